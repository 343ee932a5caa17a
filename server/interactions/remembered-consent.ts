import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import type { ClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { Consent } from "../../adapters/oauth/consents.ts";
import { LOOPBACK } from "../clients/redirect-uris.ts";
import { covers, grantScopes, requestedScopesOf } from "../provider/consent-scopes.ts";
import { ACCESS_TOKEN_LIFETIME } from "../settings/lifetimes.ts";
import { findConsentOptions, toNewGrant } from "./consent.ts";

type Stores = Pick<
  Storage,
  "appPolicies" | "consentedGrants" | "consents" | "organizations" | "secondFactorRequirement"
>;

/**
 * Creates a function that stores and returns the grant that an authorization request gets without asking again. Resolves
 * to undefined if the user has to be asked: no active grant of the user for the client covers the request, or grants for
 * several organizations do.
 */
export function createRememberedConsent(stores: Stores, clientPolicy: ClientPolicy) {
  return async function renewRememberedGrant(ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { oidc } = ctx;
    const { provider, client, account } = oidc;
    if (!client || !account || oidc.promptPending("consent") || !isIdentifiedByRedirect(ctx))
      return undefined;
    const { clientId } = client;
    const { accountId } = account;
    const remembered = (await stores.consents.list(clientId, accountId)).filter(isLasting);
    if (remembered.length === 0) return undefined;

    // The same rules as on the consent page, so nothing is granted that the page would not offer.
    const requested = requestedScopesOf(ctx);
    const scopes = [...oidc.requestParamScopes];
    const request = { userId: accountId, clientId, scopes, amr: oidc.session?.amr };
    const { options } = await findConsentOptions(stores, clientPolicy, request);
    const covered = options.flatMap((option) => {
      const grant = new provider.Grant({ accountId, clientId });
      grantScopes(grant, requested, option.role);
      const consent = remembered.find(
        ({ organizationId, payload }) =>
          organizationId === option.id && covers(new provider.Grant(payload), grant),
      );
      return consent ? [{ grant, consent }] : [];
    });
    const [only] = covered;
    if (!only || covered.length > 1) return undefined;
    const { grant, consent } = only;
    const { grantId, organizationId, expiresAt } = consent;
    const renewed = toNewGrant(grant, organizationId, Math.floor(expiresAt / 1000));
    return (await stores.consentedGrants.renew(renewed, grantId)) ? grant : undefined;
  };
}

/**
 * Returns whether the answer can only reach the client that the user allowed: it authenticates, and its redirect URI is on
 * a host of its own. Any program on a computer can pose as an app with a loopback URI or a private-use scheme, and anyone
 * as a public client (RFC 8252 §8.6).
 */
function isIdentifiedByRedirect({ oidc }: KoaContextWithOIDC): boolean {
  const { client, params } = oidc;
  const url = URL.parse(String(params?.redirect_uri));
  const isConfidential =
    client?.clientAuthMethod !== "none" && clientKindOf(client?.clientId ?? "") === "organization";
  return isConfidential && url?.protocol === "https:" && !LOOPBACK.has(url.hostname);
}

/** Returns whether a consent has not reached its end. Its grants are kept for another hour, for their access tokens. */
function isLasting({ expiresAt }: Consent): boolean {
  return expiresAt - ACCESS_TOKEN_LIFETIME * 1000 > Date.now();
}
