import type { Role } from "../../resources/access/scopes.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Database } from "../database/index.ts";
import { unplannedParameter } from "../database/prepared-statements.ts";
import type { ClientPolicy } from "./client-policy.ts";
import type { JoinedTokenRow } from "./token-row.ts";

/**
 * The state of an active grant. `role` is the user's role in the organization, absent once the user has left it;
 * `isClientAllowed`: whether the organization lets the client act for the user.
 */
export type GrantStatus = {
  organizationId: string;
  role?: Role;
  plan: Plan;
  suspended: boolean;
  isClientAllowed: boolean;
};

/** The user of a grant and its state, as of when its code or refresh token was read. */
export type GrantHolder = { userId: string; username: string; disabled: boolean; status?: GrantStatus };

type StatusRow = Pick<
  JoinedTokenRow,
  | "clientId"
  | "organizationId"
  | "role"
  | "plan"
  | "suspendedAt"
  | "allowedClients"
  | "memberApps"
  | "approvedClientId"
>;

/** Returns the state of a grant that isn't revoked. */
function toGrantStatus(row: StatusRow, clientPolicy: ClientPolicy): GrantStatus | undefined {
  const { clientId, organizationId, role, plan, allowedClients, memberApps } = row;
  if (!organizationId || !plan || !allowedClients || !memberApps) return undefined;
  const policy = { allowedClients, memberApps, isApproved: row.approvedClientId !== null };
  return {
    organizationId,
    plan,
    suspended: row.suspendedAt !== null,
    isClientAllowed: role !== null && clientPolicy(clientId, policy, role),
    ...(role && { role }),
  };
}

/** Creates a function that finds the current state of an active grant. */
export function createFindGrantStatus(
  { prepare }: Pick<Database, "prepare">,
  clientPolicy: ClientPolicy,
): (grantId: string) => Promise<GrantStatus | undefined> {
  const selectStatus = prepare<StatusRow[], "grantId">((q, { grantId }) =>
    q("grants as g")
      .join("organizations as o", "o.id", "g.organization_id")
      .leftJoin("memberships as m", (join) =>
        join.on("m.user_id", "g.user_id").andOn("m.organization_id", "g.organization_id"),
      )
      .leftJoin("approved_apps as a", (join) =>
        join.on("a.organization_id", "g.organization_id").andOn("a.client_id", "g.client_id"),
      )
      .where("g.id", unplannedParameter(q, grantId))
      .whereNull("g.revoked_at")
      .select({
        organizationId: "o.id",
        role: "m.role",
        plan: "o.plan",
        suspendedAt: "o.suspended_at",
        clientId: "g.client_id",
        allowedClients: "o.document_clients",
        memberApps: "o.member_apps",
        approvedClientId: "a.client_id",
      }),
  );

  return async function findGrantStatus(grantId) {
    const [row] = await selectStatus({ grantId });
    return row && toGrantStatus(row, clientPolicy);
  };
}

/** Returns the user and the grant of a code or refresh token whose grant isn't revoked. */
export function toGrantHolder(row: JoinedTokenRow, clientPolicy: ClientPolicy): GrantHolder | undefined {
  const { userId, username, disabledAt } = row;
  if (!userId || username === null) return undefined;
  const status = toGrantStatus(row, clientPolicy);
  return { userId, username, disabled: disabledAt !== null, ...(status && { status }) };
}
