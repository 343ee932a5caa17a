import type { Context } from "koa";
import type { Interaction, Provider } from "oidc-provider";
import type { ConsentAnswer } from "../adapters/oidc/grants.ts";
import { ConsentAnswered } from "../adapters/oidc/interactions.ts";
import type { OrganizationStore } from "../adapters/organizations.ts";
import { isPaid } from "../resources/plans.ts";
import { allowedByRole, isApiScope, type Role, withImplied } from "../resources/scopes.ts";

/** An organization that a user may let an app act for: with these scopes, of those that were requested. */
export type ConsentOption = { id: string; name: string; role: Role; scopes: string[] };

/** What a user may approve. `refusal`: why there is nothing to choose. */
export type ConsentOptions = { options: ConsentOption[]; refusal?: "plan" | "role" };

/** Returns the user's paid organizations whose role there allows some of the requested scopes. */
export async function findConsentOptions(
  organizations: Pick<OrganizationStore, "ofUser">,
  userId: string,
  requested: string[],
): Promise<ConsentOptions> {
  const paid = (await organizations.ofUser(userId)).filter(({ plan }) => isPaid(plan));
  const all = paid.map(({ id, name, role }) => ({ id, name, role, scopes: allowedByRole(requested, role) }));
  const needsApi = requested.some(isApiScope);
  const options = all.filter(({ scopes }) => !needsApi || scopes.some(isApiScope));
  if (options.length > 0) return { options };
  return { options, refusal: paid.length > 0 ? "role" : "plan" };
}

/** What the user approved, and from where. */
export type Approval = { accountId: string; option: ConsentOption; address: string };

/**
 * Stores an approval: the grant, and the answer to the consent page, in one transaction. What the role doesn't allow is
 * rejected in the grant, so that it isn't asked for again.
 * @throws AccessDenied when the user was removed from the organization in the meantime
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
  const grantId = newIdOf(grant);
  const result = { ...lastSubmission, consent: { grantId } };
  const answers: ConsentAnswer = { interactionId: uid, result };
  Object.assign(grant, { jti: grantId, organizationId: option.id, address, answers });
  await answerOnce(() => grant.save());
}

/** Stores a refusal. */
export async function denyConsent(provider: Provider, { req, res }: Context): Promise<void> {
  const denied = { error: "access_denied", error_description: "the user denied the request" };
  await answerOnce(() => provider.interactionResult(req, res, denied, { mergeWithLastSubmission: false }));
}

/** Stores an answer unless the page has one, after a double click for example: the first answer counts. */
async function answerOnce(store: () => Promise<unknown>): Promise<void> {
  try {
    await store();
  } catch (error) {
    if (!(error instanceof ConsentAnswered)) throw error;
  }
}

/** The library makes ids when it saves; the answer has to name the grant before. */
function newIdOf(grant: object): string {
  return (grant as { generateTokenId(): string }).generateTokenId();
}
