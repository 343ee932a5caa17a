import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { revokeGrants } from "../grants.ts";

// The service itself.
const SYSTEM_ID = "system";

/** What was used again after its first use. */
export type ReplayedKind = "authorization_code" | "refresh_token";

/** Revokes grants whose code or refresh token was replayed. */
export type ReplayedGrantStore = {
  /**
   * Revokes the grant and records the replay, with the IP address of the request. Of concurrent replays, the one that
   * revokes the grant records it.
   */
  revoke(grantId: string, replayed: ReplayedKind, address: string): Promise<void>;
};

/** Creates the store of replayed grants of a database. */
export function createReplayedGrantStore({ transaction }: Database, outbox: Outbox): ReplayedGrantStore {
  return {
    revoke: (id, replayed, address) =>
      transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first("client_id", "user_id", "organization_id");
        const actor = { id: SYSTEM_ID, address };
        if (!grant || !(await revokeGrants(trx, outbox, actor, { id }, "", "replay_detected"))) return;
        const { client_id, user_id, organization_id } = grant;
        // A first-party grant belongs to no organization and concerns all of the user's.
        const organizationIds: string[] = organization_id
          ? [organization_id]
          : await trx("memberships").where({ user_id }).pluck("organization_id");
        const data = { grant_id: id, client_id, user_id, replayed };
        const type = "token.replay_detected" as const;
        const events = organizationIds.map((organizationId) => ({ organizationId, type, subject: id, data }));
        await outbox.record(trx, actor, ...events);
      }),
  };
}
