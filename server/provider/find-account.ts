import { type Account, errors, type FindAccount, type KoaContextWithOIDC } from "oidc-provider";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { GrantHolder, GrantStatus } from "../../adapters/oauth/token-row.ts";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { allowedByRole, isApiScope, type Role } from "../../resources/access/scopes.ts";
import { requireApiAccess } from "./require-api-access.ts";

type Source =
  | {
      grantId?: string | undefined;
      scope?: string | undefined;
      active?: ActiveToken | undefined;
      holder?: GrantHolder | undefined;
    }
  | undefined;

/**
 * Reads the current state. To redeem a code or a refresh token, the user must still be a member in a role that allows
 * some of the granted scopes, of an organization with API access that allows the client.
 */
export function createFindAccount(accounts: AccountStore): FindAccount {
  return async (_ctx: KoaContextWithOIDC, id: string, source?: Source): Promise<Account | undefined> => {
    const holder = source?.holder;
    // A code or a refresh token was read in the same request, together with its user and the state of its grant.
    const account = holder?.userId === id ? holder : await accounts.find(id);
    if (!account || account.disabled) return undefined;
    const membership = membershipOf(source);
    return {
      accountId: id,
      role: membership?.role,
      claims: () => ({
        sub: id,
        preferred_username: account.username,
        ...(membership && { organization_id: membership.organizationId }),
      }),
    };
  };
}

function membershipOf(source: Source) {
  if (source?.active) return source.active;
  if (!source?.grantId) return undefined;
  const membership = requireMembership(source.holder?.status);
  requireScopes(source.scope, membership.role);
  return membership;
}

/** Throws InvalidGrant if the user has left; UnauthorizedClient if plan, suspension or policy forbids the client. */
function requireMembership(status: GrantStatus | undefined) {
  if (!status?.role) throw new errors.InvalidGrant("the user is no longer a member of the organization");
  // Not `invalid_grant`: the refresh token is valid again as soon as the organization upgrades, is resumed or allows it.
  requireApiAccess(status, "the user's organization");
  if (!status.isClientAllowed)
    throw new errors.UnauthorizedClient("the user's organization does not allow this client");
  return { organizationId: status.organizationId, role: status.role };
}

/** Like the role, a missing scope is temporary. */
function requireScopes(scope = "", role: Role): void {
  const granted = scope.split(" ").filter(isApiScope);
  if (granted.length > 0 && allowedByRole(granted, role).length === 0)
    throw new errors.InvalidScope("the user's role no longer allows any of the granted scopes", scope);
}
