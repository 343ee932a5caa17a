import type { AdapterPayload } from "oidc-provider";
import type { Database } from "../../database/index.ts";
import type { Outbox } from "../../events/outbox.ts";
import { toDomainEvent } from "../grant-events.ts";
import { revokeGrants } from "../grants.ts";
import { insertGrant, type NewGrant, requireMembership } from "./consented-grants.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/** Stores grants without a consent page. Revoking one updates a single row, and invalidates every token under it. */
export function grantAdapter({ knex, prepare, transaction }: Database, outbox: Outbox): ModelAdapter {
  const active = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  const selectActive = prepare<{ payload: string }[], "id">((q, { id }) =>
    q("grants").where({ id }).whereNull("revoked_at").select("payload"),
  );
  return {
    async upsert(id, payload: AdapterPayload) {
      const expires_at = (payload.exp as number) * 1000;
      if (await active(id).update({ payload: toStored(payload), expires_at })) return;
      await transaction(async (trx) => {
        const created = { ...payload, jti: id } as NewGrant;
        await requireMembership(trx, created);
        const grant = await insertGrant(trx, created, { expires_at });
        const actor = { id: grant.user_id, address: payload.address as string };
        await outbox.record(trx, actor, ...toDomainEvent("authorization.granted", grant));
      });
    },

    async find(id) {
      const payload = (await selectActive({ id }))[0]?.payload;
      return payload && { ...JSON.parse(payload), jti: id };
    },

    /** Revokes a grant because the client asked for it. */
    async destroy(id) {
      await transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first("client_id");
        if (grant) await revokeGrants(trx, outbox, { id: grant.client_id }, { id });
      });
    },
  };
}
