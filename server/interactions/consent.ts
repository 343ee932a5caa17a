import type { Context } from "koa";
import type { Interaction, Provider } from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import type { ClientPolicy } from "../../adapters/oauth/client-policy.ts";
import type { ConsentAnswer } from "../../adapters/oauth/oidc/grants.ts";
import { ConsentAnswered } from "../../adapters/oauth/oidc/interactions.ts";
import { allowedByRole, isApiScope, type Role } from "../../resources/access/scopes.ts";
import { isPaid } from "../../resources/plans.ts";
import { grantScopes } from "../provider/consent-scopes.ts";
import type { ConsentDetails } from "../provider/interaction-policy.ts";

/** An organization that a user may grant access to, and the requested scopes that the user's role there allows. */
export type ConsentOption = { id: string; name: string; role: Role; scopes: string[] };

/** The organizations that a user may choose from. */
export type ConsentOptions = {
  options: ConsentOption[];
  /** The names of the user's organizations that don't let their members connect this client. */
  excluded: string[];
  /** Why there are no options. */
  refusal?: "plan" | "client" | "role";
};

type Stores = Pick<Storage, "allowedClients" | "organizations">;
type ConsentRequest = { userId: string; clientId: string; scopes: string[] };

/** Returns the user's paid organizations that allow the client, and whose role there allows some of the scopes. */
export async function findConsentOptions(
  { organizations, allowedClients }: Stores,
  clientPolicy: ClientPolicy,
  { userId, clientId, scopes: requested }: ConsentRequest,
): Promise<ConsentOptions> {
  const [memberships, allowed] = await Promise.all([
    organizations.listByUser(userId),
    allowedClients.findByUser(userId),
  ]);
  const paid = memberships.filter(({ plan }) => isPaid(plan));
  const open = paid.filter(({ id }) => clientPolicy(clientId, allowed.get(id) ?? "none"));
  const excluded = paid.filter((one) => !open.includes(one)).map(({ name }) => name);
  const all = open.map(({ id, name, role }) => ({ id, name, role, scopes: allowedByRole(requested, role) }));
  const needsApi = requested.some(isApiScope);
  const options = all.filter(({ scopes }) => !needsApi || scopes.some(isApiScope));
  if (options.length > 0) return { options, excluded };
  if (paid.length === 0) return { options, excluded, refusal: "plan" };
  return { options, excluded, refusal: open.length > 0 ? "role" : "client" };
}

/** What the user approved, and from which IP address. */
export type Approval = { accountId: string; option: ConsentOption; address: string };

/**
 * Stores the grant and the answer to the consent page in one transaction.
 * @throws AccessDenied if the user was removed from the organization in the meantime
 */
export async function approveConsent(
  provider: Provider,
  interaction: Interaction,
  { accountId, option, address }: Approval,
): Promise<void> {
  const { params, prompt, lastSubmission, uid } = interaction;
  const grant = new provider.Grant({ accountId, clientId: params.client_id as string });
  const { missingOIDCScope, missingResourceScopes } = prompt.details as Partial<ConsentDetails>;
  const requested = { openid: missingOIDCScope ?? [], resources: missingResourceScopes ?? {} };
  grantScopes(grant, requested, option.role);
  const grantId = createGrantId(grant);
  const result = { ...lastSubmission, consent: { grantId } };
  const answers: ConsentAnswer = { interactionId: uid, result };
  Object.assign(grant, { jti: grantId, organizationId: option.id, address, answers });
  await answerOnce(() => grant.save());
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

/** Returns the id of a new grant. The library creates it on saving, but needs to know it before. */
export function createGrantId(grant: object): string {
  return (grant as { generateTokenId(): string }).generateTokenId();
}
