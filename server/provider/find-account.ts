import { type Account, errors, type FindAccount, type KoaContextWithOIDC } from "oidc-provider";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import type { GrantHolder, GrantStatus } from "../../adapters/oauth/grant-status.ts";
import type { GrantStore } from "../../adapters/oauth/grants.ts";
import type { ActiveToken } from "../../resources/access/introspect.ts";
import { allowedByRole, isApiScope, type Role } from "../../resources/access/scopes.ts";
import { requireApiAccess } from "./require-api-access.ts";

type Stores = { accounts: AccountStore; grants: GrantStore };
type Source =
  | {
      grantId?: string | undefined;
      scope?: string | undefined;
      active?: ActiveToken | undefined;
      holder?: GrantHolder | undefined;
    }
  | undefined;

/**
 * Creates oidc-provider's user lookup, which reads the current state and finds no disabled user. When a code or a refresh
 * token is redeemed, the user must still be a member of the organization of the grant, in a role that allows some of
 * the granted scopes, and that organization must allow the client, be on a paid plan and not be suspended. The role is returned with the account, for
 * `getResourceServerInfo`.
 */
export function findAccount({ accounts, grants }: Stores): FindAccount {
  return async (_ctx: KoaContextWithOIDC, id: string, source?: Source): Promise<Account | undefined> => {
    const holder = source?.holder;
    // A code or a refresh token was read in the same request, together with its user.
    const account = holder?.userId === id ? holder : await accounts.find(id);
    if (!account || account.disabled) return undefined;
    const membership = await membershipOf(grants, source);
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

/** Returns what an access token was loaded with, or the current state if a code or a refresh token is redeemed. */
async function membershipOf(grants: GrantStore, source: Source) {
  if (source?.active) return source.active;
  if (!source?.grantId) return undefined;
  const membership = requireMembership(source.holder?.status ?? (await grants.findStatus(source.grantId)));
  requireScopes(source.scope, membership.role);
  return membership;
}

/** @throws InvalidGrant if the user has left the organization; UnauthorizedClient if its plan, suspension or policy forbids the client */
function requireMembership(status: GrantStatus | undefined) {
  if (!status?.role) throw new errors.InvalidGrant("the user is no longer a member of the organization");
  // Not `invalid_grant`: the refresh token is valid again as soon as the organization upgrades, is resumed or allows it.
  requireApiAccess(status, "the user's organization");
  if (!status.isClientAllowed) {
    throw new errors.UnauthorizedClient("the user's organization does not allow this client");
  }
  return { organizationId: status.organizationId, role: status.role };
}

/** Rejects a request whose tokens would have no scope. Like the role, this is temporary. */
function requireScopes(scope = "", role: Role): void {
  const granted = scope.split(" ").filter(isApiScope);
  if (granted.length > 0 && allowedByRole(granted, role).length === 0) {
    throw new errors.InvalidScope("the user's role no longer allows any of the granted scopes", scope);
  }
}
