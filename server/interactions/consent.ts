import type { Context } from "koa";
import type { Grant, Interaction, Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import type { ClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { NewGrant } from "../../adapters/oauth/oidc/consented-grants.ts";
import { ConsentAnswered } from "../../adapters/oauth/oidc/interactions.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import { allowedByRole, isApiScope, type Role } from "../../resources/access/scopes.ts";
import { isPaid } from "../../resources/plans.ts";
import { epochSeconds } from "../auth/sign-in-proof.ts";
import { grantScopes } from "../provider/consent-scopes.ts";
import type { ConsentDetails } from "../provider/interaction-policy.ts";
import { isMultiFactor } from "../provider/sessions.ts";
import { GRANT_LIFETIME } from "../settings/lifetimes.ts";

/** An organization that a user may grant access to, and the requested scopes that the user's role there allows. */
export type ConsentOption = { id: string; name: string; role: Role; scopes: string[] };

/**
 * An organization whose policy doesn't let the user authorize this client. `kind`: it doesn't allow such clients at all;
 * `approval`: members may only authorize approved ones; `members`: they may authorize none; `second_factor`: owners and
 * admins must sign in with a second factor.
 */
type ExclusionReason = "kind" | "approval" | "members" | "second_factor";
export type ExcludedOrganization = { id: string; name: string; reason: ExclusionReason };

/** The organizations that a user may choose from. */
export type ConsentOptions = {
  options: ConsentOption[];
  excluded: ExcludedOrganization[];
  /** Why there are no options, if not because of `excluded`. */
  refusal?: "suspended" | "plan" | "role";
};

type Stores = Pick<Storage, "appPolicies" | "organizations" | "secondFactorRequirement">;
type ConsentRequest = {
  userId: string;
  clientId: string;
  scopes: string[];
  /** How the user signed in (RFC 8176). */
  amr: readonly string[] | undefined;
};

/** Returns the user's paid organizations that are not suspended and allow the client, and whose role there allows some of the scopes. */
export async function findConsentOptions(
  { organizations, appPolicies, secondFactorRequirement }: Stores,
  clientPolicy: ClientPolicy,
  { userId, clientId, scopes: requested, amr }: ConsentRequest,
): Promise<ConsentOptions> {
  const [memberships, policies, strict] = await Promise.all([
    organizations.listByUser(userId),
    appPolicies.findByUser(userId, clientId),
    isMultiFactor({ amr }) ? ([] as string[]) : secondFactorRequirement.listByUser(userId),
  ]);
  const active = memberships.filter(({ suspension }) => !suspension);
  const paid = active.filter(({ plan }) => isPaid(plan));
  const refuses = ({ id, role }: Membership): ExcludedOrganization["reason"] | undefined => {
    if (strict.includes(id)) return "second_factor";
    const policy = policies.get(id);
    if (!policy || !clientPolicy(clientId, policy, "owner")) return "kind";
    if (clientPolicy(clientId, policy, role)) return undefined;
    return policy.memberApps === "approved" ? "approval" : "members";
  };
  const open = paid.filter((one) => !refuses(one));
  const excluded = paid.flatMap((one) => {
    const reason = refuses(one);
    return reason ? [{ id: one.id, name: one.name, reason }] : [];
  });
  const all = open.map(({ id, name, role }) => ({ id, name, role, scopes: allowedByRole(requested, role) }));
  const needsApi = requested.some(isApiScope);
  const options = all.filter(({ scopes }) => !needsApi || scopes.some(isApiScope));
  if (options.length > 0) return { options, excluded };
  if (active.length === 0 && memberships.length > 0) return { options, excluded, refusal: "suspended" };
  if (paid.length === 0) return { options, excluded, refusal: "plan" };
  return { options, excluded, ...(open.length > 0 && { refusal: "role" }) };
}

/** What the user approved, and from which IP address. */
export type Approval = { accountId: string; option: ConsentOption; address: string };

/**
 * Stores the grant and the answer to the consent page in one transaction.
 * @throws AccessDenied if the user was removed from the organization in the meantime
 */
export async function approveConsent(
  provider: Provider,
  { consentedGrants }: Pick<Storage, "consentedGrants">,
  interaction: Interaction,
  { accountId, option, address }: Approval,
): Promise<void> {
  const { params, prompt, lastSubmission, uid } = interaction;
  const grant = new provider.Grant({ accountId, clientId: params.client_id as string });
  const { missingOIDCScope, missingResourceScopes } = prompt.details as Partial<ConsentDetails>;
  const requested = { openid: missingOIDCScope ?? [], resources: missingResourceScopes ?? {} };
  grantScopes(grant, requested, option.role);
  const approved = toNewGrant(grant, option.id, epochSeconds() + GRANT_LIFETIME);
  const result = { ...lastSubmission, consent: { grantId: approved.jti } };
  await answerOnce(() => consentedGrants.approve(approved, { interactionId: uid, result }, address));
}

export async function denyConsent(provider: Provider, { req, res }: Context): Promise<void> {
  const denied = { error: "access_denied", error_description: "the user denied the request" };
  await answerOnce(() => provider.interactionResult(req, res, denied, { mergeWithLastSubmission: false }));
}

/** Keeps the first answer to a consent page, for example after a double click. */
async function answerOnce(store: () => Promise<unknown>): Promise<void> {
  try {
    await store();
  } catch (error) {
    if (!(error instanceof ConsentAnswered)) throw error;
  }
}

/** Gives a grant its id and returns what to store about it. `exp` is when it expires, in epoch seconds. */
export function toNewGrant(grant: Grant, organizationId: string, exp: number): NewGrant {
  const jti = (grant as unknown as { generateTokenId(): string }).generateTokenId();
  return Object.assign(grant, { jti, organizationId, iat: epochSeconds(), exp }) as unknown as NewGrant;
}
