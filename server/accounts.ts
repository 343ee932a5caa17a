import { type Account, errors, type FindAccount, type KoaContextWithOIDC } from "oidc-provider";
import type { AccountStore } from "../adapters/accounts.ts";
import type { GrantStore } from "../adapters/grants.ts";
import { isPaid } from "../resources/plans.ts";

type Stores = { accounts: AccountStore; grants: GrantStore };
type Source = { grantId?: string } | undefined;

/**
 * Tells oidc-provider who a person is, live: nobody when disabled. When a code or a refresh token is redeemed, the
 * person must still belong to the organization acted for, and that one must be paid.
 */
export function findAccount({ accounts, grants }: Stores): FindAccount {
  return async (_ctx: KoaContextWithOIDC, id: string, source?: Source): Promise<Account | undefined> => {
    const account = await accounts.find(id);
    if (!account || account.disabled) return undefined;
    const organizationId = source?.grantId ? await actingFor(grants, source.grantId) : undefined;
    return {
      accountId: id,
      claims: () => ({
        sub: id,
        preferred_username: account.username,
        ...(organizationId && { organization_id: organizationId }),
      }),
    };
  };
}

async function actingFor(grants: GrantStore, grantId: string): Promise<string> {
  const standing = await grants.standing(grantId);
  if (!standing?.isMember) throw new errors.InvalidGrant("the person has left the organization acted for");
  // Temporary: the refresh token stays good for when the organization is on a paid plan again.
  if (!isPaid(standing.plan)) {
    throw new errors.UnauthorizedClient("the organization acted for needs the Growth or the Premium plan");
  }
  return standing.organizationId;
}
