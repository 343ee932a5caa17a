import type { Context } from "koa";
import type { Interaction, Provider } from "oidc-provider";
import type { ConsentAnswer } from "../../adapters/oauth/oidc/grants.ts";
import { ConsentAnswered } from "../../adapters/oauth/oidc/interactions.ts";
import type { OrganizationStore } from "../../adapters/organizations/store.ts";
import { allowedByRole, isApiScope, type Role, withImplied } from "../../resources/access/scopes.ts";
import { isPaid } from "../../resources/plans.ts";

/** An organization that a user may grant access to, and the requested scopes that the user's role there allows. */
export type ConsentOption = { id: string; name: string; role: Role; scopes: string[] };

/** The organizations that a user may choose from. `refusal`: why there are none. */
export type ConsentOptions = { options: ConsentOption[]; refusal?: "plan" | "role" };

/** Returns the user's paid organizations whose role there allows some of the requested scopes. */
export async function findConsentOptions(
  organizations: Pick<OrganizationStore, "listByUser">,
  userId: string,
  requested: string[],
): Promise<ConsentOptions> {
  const paid = (await organizations.listByUser(userId)).filter(({ plan }) => isPaid(plan));
  const all = paid.map(({ id, name, role }) => ({ id, name, role, scopes: allowedByRole(requested, role) }));
  const needsApi = requested.some(isApiScope);
  const options = all.filter(({ scopes }) => !needsApi || scopes.some(isApiScope));
  if (options.length > 0) return { options };
  return { options, refusal: paid.length > 0 ? "role" : "plan" };
}

/** What the user approved, and from which IP address. */
export type Approval = { accountId: string; option: ConsentOption; address: string };

/**
 * Stores the grant and the answer to the consent page in one transaction. The grant rejects scopes that the role doesn't
 * allow, so the library doesn't prompt for them again.
 * @throws AccessDenied if the user was removed from the organization in the meantime
 */
export async function approveConsent(
  provider: Provider,
  interaction: Interaction,
  { accountId, option, address }: Approval,
): Promise<void> {
  const { params, prompt, lastSubmission, uid } = interaction;
  const grant = new provider.Grant({ accountId, clientId: params.client_id as string });
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    missingOIDCScope?: string[];
    missingResourceScopes?: Record<string, string[]>;
  };
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    const allowed = allowedByRole(scopes, option.role);
    const rejected = scopes.filter((scope) => !allowed.includes(scope));
    grant.addResourceScope(resource, [...withImplied(allowed)].join(" "));
    if (rejected.length > 0) grant.rejectResourceScope(resource, rejected.join(" "));
  }
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

/** Returns the id of a new grant. The library creates it on saving, but the answer must name the grant before. */
function createGrantId(grant: object): string {
  return (grant as { generateTokenId(): string }).generateTokenId();
}
