import type { Database } from "../database.ts";
import { endGrants, toHappening } from "../grants.ts";
import type { Journal } from "../journal.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/** Grants: what a person allowed an app. Ending one is one row; whatever belongs to it dies with it. */
export function grantAdapter({ knex, transaction }: Database, journal: Journal): ModelAdapter {
  const alive = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  return {
    async upsert(id, payload) {
      const expires_at = (payload.exp as number) * 1000;
      const stored = toStored(payload);
      if (await alive(id).update({ payload: stored, expires_at })) return;
      const grant = {
        id,
        client_id: payload.clientId as string,
        user_id: payload.accountId as string,
        organization_id: (payload.organizationId as string | undefined) ?? null,
        payload: stored,
      };
      await transaction(async (trx) => {
        await trx("grants").insert({ ...grant, created_at: Date.now(), expires_at });
        const by = { actor: grant.user_id, address: payload.address as string };
        await journal.record(trx, by, ...toHappening("authorization.granted", grant));
      });
    },

    async find(id) {
      const row = await alive(id).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    /** At the wish of the app, or because one of its codes or tokens was used twice. */
    async destroy(id) {
      await transaction(async (trx) => {
        const grant = await trx("grants").where({ id }).first("client_id");
        if (grant) await endGrants(trx, journal, { actor: grant.client_id }, { id });
      });
    },
  };
}
