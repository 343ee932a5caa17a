import { randomBytes } from "node:crypto";
import type { Context } from "koa";
import type { Grant, Interaction, KoaContextWithOIDC, Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { type AllowedClients, type AppPolicyCheck, clientKindOf } from "../../adapters/oauth/app-policy.ts";
import type { Consent, NewGrant } from "../../adapters/oauth/oidc/grants.ts";
import { ConsentAnswered } from "../../adapters/oauth/oidc/interactions.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import { allowedByRole, isApiScope, MANAGERS } from "../../resources/access/scopes.ts";
import { isPaid } from "../../resources/plans.ts";
import { covers, grantScopes, type RequestedScopes, requestedScopesOf } from "../provider/consent-scopes.ts";
import type { ConsentDetails } from "../provider/interaction-policy.ts";
import { epochSeconds, isMultiFactor } from "../provider/seams/session-model.ts";
import { LOOPBACK } from "../settings/setting-types.ts";
import { ACCESS_TOKEN_LIFETIME, GRANT_LIFETIME } from "../settings/token-lifetimes.ts";
import { accountIdOf } from "./interaction.ts";

export type ConsentOption = Pick<Membership, "id" | "name" | "role"> & { scopes: string[] };

/** `kind`: no such clients; `approval`: only approved ones; `members`: none; `second_factor`: needed for managers. */
export type ExclusionReason = "kind" | "approval" | "members" | "second_factor";

export type Exclusion = Pick<Membership, "id" | "name" | "role"> & {
  reason: ExclusionReason;
  /** What the organization would have to accept, if the user may change that, and the server accepts the client. */
  needed: AllowedClients | undefined;
};

export type ConsentOptions = {
  options: ConsentOption[];
  excluded: Exclusion[];
  /** Why there are no options, if not because of `excluded`. */
  refusal: "suspended" | "plan" | "role" | undefined;
};

type ConsentRequest = {
  userId: string;
  clientId: string;
  scopes: string[];
  /** How the user signed in (RFC 8176). */
  amr: readonly string[] | undefined;
};

const NARROWEST_FIRST: readonly AllowedClients[] = ["known", "any"];

type OptionStores = Pick<Storage, "organizations" | "organizationSettings">;

/** Leaves out organizations that are unpaid, suspended or refuse the client, and those whose role allows no scope. */
export async function findConsentOptions(
  { organizations, organizationSettings }: OptionStores,
  appPolicyCheck: AppPolicyCheck,
  { userId, clientId, scopes: requested, amr }: ConsentRequest,
): Promise<ConsentOptions> {
  const [memberships, settings] = await Promise.all([
    organizations.listByUser(userId),
    organizationSettings.listByUser(userId, clientId),
  ]);
  const settingsOf = new Map(settings.map((own) => [own.id, own]));
  const refuses = ({ id, role }: Membership): ExclusionReason | undefined => {
    const own = settingsOf.get(id);
    if (own?.requiresSecondFactor && role !== "member" && !isMultiFactor({ amr })) return "second_factor";
    if (!own || !appPolicyCheck(clientId, own, "owner")) return "kind";
    if (appPolicyCheck(clientId, own, role)) return undefined;
    return own.memberApps === "approved" ? "approval" : "members";
  };
  const neededBy = ({ id, role }: Membership) => {
    const own = MANAGERS.includes(role) && settingsOf.get(id);
    const wouldDo = (allowedClients: AllowedClients) =>
      own && appPolicyCheck(clientId, { ...own, allowedClients }, role);
    return NARROWEST_FIRST.find(wouldDo);
  };
  const active = memberships.filter(({ suspension }) => !suspension);
  const paid = active.filter(({ plan }) => isPaid(plan));
  const needsApi = requested.some(isApiScope);
  const found: ConsentOptions = { options: [], excluded: [], refusal: undefined };
  for (const membership of paid) {
    const { id, name, role } = membership;
    const scopes = allowedByRole(requested, role);
    const reason = refuses(membership);
    if (reason) found.excluded.push({ id, name, role, reason, needed: neededBy(membership) });
    else if (needsApi && !scopes.some(isApiScope)) found.refusal = "role";
    else found.options.push({ id, name, role, scopes });
  }
  if (found.options.length > 0) return { ...found, refusal: undefined };
  if (active.length === 0 && memberships.length > 0) return { ...found, refusal: "suspended" };
  return paid.length === 0 ? { ...found, refusal: "plan" } : found;
}

/** What an app may already do for a user in one organization, and which of the requested scopes are new. */
export type EarlierConsent = { option: ConsentOption; added: string[] };

/** Resolves to undefined unless the user allowed the app all requested resources, for exactly one of the options. */
export async function findEarlierConsent(
  provider: Provider,
  { consents }: Pick<Storage, "consents">,
  interaction: Interaction,
  options: ConsentOption[],
): Promise<EarlierConsent | undefined> {
  // RFC 8628 §5.4: a device may be someone else's, so the user reads everything.
  if (interaction.deviceCode) return undefined;
  const { openid, resources } = requestOf(interaction);
  const listed = await consents.list(interaction.params.client_id as string, accountIdOf(interaction));
  const lasting = listed.filter(isLasting);
  const addedTo = (grant: Grant, { scopes }: ConsentOption) => {
    const scopesOf = (scope: string) => scope.split(" ");
    const isNew = (scope: string) =>
      openid.includes(scope)
        ? !scopesOf(grant.getOIDCScope()).includes(scope)
        : Object.keys(resources).some((one) => !scopesOf(grant.getResourceScope(one)).includes(scope));
    return scopes.filter(isNew);
  };
  const earlier = options.flatMap((option) => {
    const added = lasting
      .filter(({ organizationId }) => organizationId === option.id)
      .map(({ payload }) => new provider.Grant(payload))
      .filter((grant) => Object.keys(resources).every((one) => one in (grant.resources ?? {})))
      .map((grant) => addedTo(grant, option))
      .sort((one, other) => one.length - other.length);
    return added[0] ? [{ option, added: added[0] }] : [];
  });
  return earlier.length === 1 ? earlier[0] : undefined;
}

function requestOf({ prompt }: Interaction): RequestedScopes {
  const { missingOIDCScope, missingResourceScopes } = prompt.details as Partial<ConsentDetails>;
  return { openid: missingOIDCScope ?? [], resources: missingResourceScopes ?? {} };
}

/** In one transaction. Throws AccessDenied if the user was removed from the organization in the meantime. */
export async function approveConsent(
  provider: Provider,
  { consents }: Pick<Storage, "consents">,
  interaction: Interaction,
  { option, address }: { option: ConsentOption; address: string },
): Promise<void> {
  const { params, lastSubmission, uid } = interaction;
  const grant = new provider.Grant({
    accountId: accountIdOf(interaction),
    clientId: params.client_id as string,
  });
  grantScopes(grant, requestOf(interaction), option.role);
  const approved = toNewGrant(grant, option.id, epochSeconds() + GRANT_LIFETIME);
  const result = { ...lastSubmission, consent: { grantId: approved.jti } };
  await answerOnce(() => consents.approve(approved, { interactionId: uid, result }, address));
}

export async function denyConsent(provider: Provider, { req, res }: Context): Promise<void> {
  const denied = { error: "access_denied", error_description: "the user denied the request" };
  await answerOnce(() => provider.interactionResult(req, res, denied, { mergeWithLastSubmission: false }));
}

/** Keeps the first answer, for example after a double click. */
async function answerOnce(store: () => Promise<unknown>): Promise<void> {
  try {
    await store();
  } catch (error) {
    if (!(error instanceof ConsentAnswered)) throw error;
  }
}

/** Gives a grant its id. `exp` is in epoch seconds. */
function toNewGrant(grant: Grant, organizationId: string, exp: number): NewGrant {
  const jti = randomBytes(32).toString("base64url");
  return Object.assign(grant, { jti, organizationId, iat: epochSeconds(), exp }) as unknown as NewGrant;
}

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
