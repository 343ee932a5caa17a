import type { Knex } from "knex";
import type { Database } from "../../database/index.ts";
import type { GrantRow } from "../../database/oauth-tables.ts";
import type { Outbox } from "../../events/outbox.ts";
import { revokeGrants } from "../grants.ts";

// The service itself.
const SYSTEM_ID = "system";

/** What was used again after its first use. */
export type ReplayedKind = "authorization_code" | "refresh_token";

/** Revokes grants whose refresh token was replayed outside the token endpoint. */
export type ReplayedGrantStore = {
  /** Revokes the grant and records the replay once, with the IP address of the request. */
  revoke(grantId: string, address: string): Promise<void>;
};

/** Creates the store of replayed grants of a database. */
export function createReplayedGrantStore({ transaction }: Database, outbox: Outbox): ReplayedGrantStore {
  return {
    revoke: (id, address) =>
      transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first();
        if (grant) await revokeReplayedGrant(trx, outbox, grant, "refresh_token", address);
      }),
  };
}

/**
 * Revokes the grant of a replayed code or token and records the replay. Of concurrent replays, the one that revokes the
 * grant records it. Part of the caller's transaction.
 */
export async function revokeReplayedGrant(
  trx: Knex.Transaction,
  outbox: Outbox,
  { id, client_id, user_id, organization_id }: GrantRow,
  replayed: ReplayedKind,
  address: string | undefined,
): Promise<void> {
  const actor = { id: SYSTEM_ID, ...(address && { address }) };
  if (!(await revokeGrants(trx, outbox, actor, { id }, "", "replay_detected"))) return;
  // A first-party grant belongs to no organization and concerns all of the user's.
  const organizationIds: string[] = organization_id
    ? [organization_id]
    : await trx("memberships").where({ user_id }).pluck("organization_id");
  const data = { grant_id: id, client_id, user_id, replayed };
  await outbox.record(
    trx,
    actor,
    ...organizationIds.map((organizationId) => ({
      organizationId,
      type: "token.replay_detected" as const,
      subject: id,
      data,
    })),
  );
}
