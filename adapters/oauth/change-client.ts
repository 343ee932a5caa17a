import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { ClientRow } from "../database/tables/oauth.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockClient } from "../locks.ts";
import { revokeGrants } from "./grants.ts";

const FAPI_RULES = {
  key: "A client that follows FAPI 2.0 needs a public key. Add one first.",
  last_key: "A client that follows FAPI 2.0 needs a public key. Add another one first, or turn FAPI 2.0 off.",
  secrets: "A client that follows FAPI 2.0 must not have secrets. Remove them first.",
  new_secret: "A client that follows FAPI 2.0 must not have secrets. Turn FAPI 2.0 off first.",
  redirect_uris: "A client that follows FAPI 2.0 must only have https redirect URIs.",
};

/** A change would leave a client that contradicts the FAPI 2.0 Security Profile. The message names the rule. */
export class FapiConflict extends Error {
  override readonly name = "FapiConflict";
  constructor(rule: keyof typeof FAPI_RULES) {
    super(FAPI_RULES[rule]);
  }
}

/** A client as it was locked, until the end of the transaction. */
export type LockedClient = Pick<Change, "trx"> & {
  id: string;
  row: ClientRow;
  update(columns: Partial<ClientRow>): Promise<void>;
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
    work: (client: LockedClient) => Promise<Result>,
  ): Promise<Result | Missing> =>
    outbox.change(actor, async (change) => {
      const { trx, record } = change;
      const row = await lockClient(trx, organizationId);
      if (!row) return missing;
      const { id } = row;
      return work({
        trx,
        id,
        row,
        async update(columns) {
          await trx("clients").where({ id }).update(columns);
        },
        async revokeTokens() {
          await trx("clients").where({ id }).increment("generation");
          await revokeGrants(change, { client_id: id });
        },
        record: (type, data) =>
          record({ organizationId, type, subject: id, data: { client_id: id, ...data } }),
      });
    });
}

/** Throws FapiConflict if the client follows the profile. */
export function forbidWithFapi({ row }: LockedClient, rule: keyof typeof FAPI_RULES): void {
  if (row.fapi) throw new FapiConflict(rule);
}
