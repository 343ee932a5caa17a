import { type Account, errors, type FindAccount, type KoaContextWithOIDC } from "oidc-provider";
import type { AccountStore } from "../adapters/accounts.ts";
import type { GrantStore } from "../adapters/grants.ts";
import { isPaid } from "../resources/plans.ts";
import { allowedByRole, isApiScope, type Role } from "../resources/scopes.ts";

type Stores = { accounts: AccountStore; grants: GrantStore };
type Source = { grantId?: string; scope?: string } | undefined;

/**
 * Looks a user up for oidc-provider, live: none when disabled. When a code or a refresh token is redeemed, the user must
 * still belong to the organization acted for, in a role that allows some of what was granted, and that organization must
 * be on a paid plan. The role is left on the account, for `getResourceServerInfo`.
 */
export function findAccount({ accounts, grants }: Stores): FindAccount {
  return async (_ctx: KoaContextWithOIDC, id: string, source?: Source): Promise<Account | undefined> => {
    const account = await accounts.find(id);
    if (!account || account.disabled) return undefined;
    const standing = source?.grantId ? await actingFor(grants, source.grantId) : undefined;
    if (standing) requireScopes(source?.scope, standing.role);
    return {
      accountId: id,
      role: standing?.role,
      claims: () => ({
        sub: id,
        preferred_username: account.username,
        ...(standing && { organization_id: standing.organizationId }),
      }),
    };
  };
}

async function actingFor(grants: GrantStore, grantId: string) {
  const standing = await grants.standing(grantId);
  if (!standing?.role) throw new errors.InvalidGrant("the user is no longer a member of the organization");
  // Temporary: the refresh token stays good for when the organization is on a paid plan again.
  if (!isPaid(standing.plan)) {
    throw new errors.UnauthorizedClient("the organization acted for needs the Growth or the Premium plan");
  }
  return { organizationId: standing.organizationId, role: standing.role };
}

/** Refuses a token that would open nothing; as temporary as the role. */
function requireScopes(scope = "", role: Role): void {
  const granted = scope.split(" ").filter(isApiScope);
  if (granted.length > 0 && allowedByRole(granted, role).length === 0) {
    throw new errors.InvalidScope("the user's role no longer allows any of the granted scopes", scope);
  }
}
