import type { Database } from "../database.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/** Grants: what a person allowed an app. Ending one is one row; whatever belongs to it dies with it. */
export function grantAdapter({ knex }: Database): ModelAdapter {
  const alive = (id: string) => knex("grants").where({ id }).whereNull("revoked_at");
  return {
    async upsert(id, payload) {
      const expires_at = (payload.exp as number) * 1000;
      const stored = toStored(payload);
      if (await alive(id).update({ payload: stored, expires_at })) return;
      await knex("grants").insert({
        id,
        client_id: payload.clientId,
        user_id: payload.accountId,
        organization_id: payload.organizationId ?? null,
        payload: stored,
        created_at: Date.now(),
        expires_at,
      });
    },

    async find(id) {
      const row = await alive(id).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    async destroy(id) {
      await alive(id).update({ revoked_at: Date.now() });
    },
  };
}
