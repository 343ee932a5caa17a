import { SYSTEM } from "../../../resources/events/types.ts";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { revokeGrants } from "../grants.ts";

export type ReusedKind = "authorization_code" | "refresh_token";

export type TokenReuseStore = ReturnType<typeof createTokenReuseStore>;

export function createTokenReuseStore({ transaction }: Database, outbox: Outbox) {
  return {
    /** Revokes the grant; of concurrent reuses, the one that revokes it is recorded. */
    revoke: (id: string, replayed: ReusedKind, address: string): Promise<void> =>
      transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first("client_id", "user_id", "organization_id");
        const actor = { ...SYSTEM, address };
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
