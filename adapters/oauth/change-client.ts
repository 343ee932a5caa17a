import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockClient } from "../locks.ts";
import { revokeGrants } from "./grants.ts";

/** A client that is locked until the end of the transaction. */
export type LockedClient = Pick<Change, "trx"> & {
  id: string;
  revokeTokens(): Promise<void>;
  record(type: EventType, data?: object): Promise<void>;
};

export type ChangeClient = ReturnType<typeof createChangeClient>;

/** Creates a function that changes the client of an organization. It resolves to `missing` if there is none. */
export function createChangeClient(outbox: Outbox) {
  return <Result, Missing>(
    organizationId: string,
    actor: Actor,
    missing: Missing,
    change: (client: LockedClient) => Promise<Result>,
  ): Promise<Result | Missing> =>
    outbox.change(actor, async (work) => {
      const { trx, record } = work;
      const id = await lockClient(trx, organizationId);
      if (!id) return missing;
      return change({
        trx,
        id,
        async revokeTokens() {
          await trx("clients").where({ id }).increment("generation");
          await revokeGrants(work, { client_id: id });
        },
        record: (type, data) =>
          record({ organizationId, type, subject: id, data: { client_id: id, ...data } }),
      });
    });
}
