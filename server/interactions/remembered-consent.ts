import type { Grant, KoaContextWithOIDC } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { type AppPolicyCheck, clientKindOf } from "../../adapters/oauth/app-policy.ts";
import type { Consent } from "../../adapters/oauth/oidc/grants.ts";
import { covers, grantScopes, requestedScopesOf } from "../provider/consent-scopes.ts";
import { LOOPBACK } from "../settings/setting-types.ts";
import { ACCESS_TOKEN_LIFETIME } from "../settings/token-lifetimes.ts";
import { findConsentOptions, type OptionStores, toNewGrant } from "./consent.ts";

/** Resolves to undefined unless the user's active grants cover the request and belong to one organization. */
export function createRememberedConsent(
  storage: OptionStores & Pick<Storage, "consents">,
  appPolicyCheck: AppPolicyCheck,
) {
  return async function renewRememberedGrant(ctx: KoaContextWithOIDC): Promise<Grant | undefined> {
    const { oidc } = ctx;
    const { provider, client, account } = oidc;
    if (!client || !account || oidc.promptPending("consent") || !isIdentifiedByRedirect(ctx))
      return undefined;
    const { clientId } = client;
    const { accountId } = account;
    const remembered = (await storage.consents.list(clientId, accountId)).filter(isLasting);
    if (remembered.length === 0) return undefined;

    // The same rules as on the consent page, so nothing is granted that the page would not offer.
    const requested = requestedScopesOf(ctx);
    const scopes = [...oidc.requestParamScopes];
    const request = { userId: accountId, clientId, scopes, amr: oidc.session?.amr };
    const { options } = await findConsentOptions(storage, appPolicyCheck, request);
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
    return (await storage.consents.renew(renewed, grantId)) ? grant : undefined;
  };
}

/**
 * RFC 8252 §8.6: any program can pose as an app on loopback or a private-use scheme, and anyone as a public client.
 */
function isIdentifiedByRedirect({ oidc }: KoaContextWithOIDC): boolean {
  const { client, params } = oidc;
  const url = URL.parse(String(params?.redirect_uri));
  const isConfidential =
    client?.clientAuthMethod !== "none" && clientKindOf(client?.clientId ?? "") === "organization";
  return isConfidential && url?.protocol === "https:" && !LOOPBACK.has(url.hostname);
}

/** Grants are kept for an hour after the end of their consent, for their access tokens. */
function isLasting({ expiresAt }: Consent): boolean {
  return expiresAt - ACCESS_TOKEN_LIFETIME * 1000 > Date.now();
}
