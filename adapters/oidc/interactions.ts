import { type AdapterPayload, errors } from "oidc-provider";
import type { Database } from "../database.ts";
import { isDuplicate } from "../engine.ts";
import { sha256 } from "../hash.ts";
import { type ModelAdapter, toStored } from "./model.ts";

/** Sign-in and consent under way: each goes on once. */
export function interactionAdapter({ knex }: Database): ModelAdapter {
  const open = (id: string) =>
    knex("interactions")
      .where({ id_hash: sha256(id) })
      .whereNull("destroyed_at");
  return {
    async upsert(id, payload, expiresIn = 0) {
      const state = {
        payload: toStored(withoutSessionId(payload)),
        user_id: payload.result?.login?.accountId ?? null,
        expires_at: Date.now() + expiresIn * 1000,
      };
      if (await open(id).update(state)) return;
      try {
        await knex("interactions").insert({ id_hash: sha256(id), ...state });
      } catch (error) {
        throw isDuplicate(error) ? alreadyUsed() : error;
      }
    },

    async find(id) {
      const row = await open(id).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    // Of two requests that go on with one approval, the second one finds nothing to end.
    async destroy(id) {
      if (!(await open(id).update({ destroyed_at: Date.now(), payload: "{}" }))) throw alreadyUsed();
    },
  };
}

function alreadyUsed() {
  return new errors.InvalidRequest("this sign-in was already finished; start again from the application");
}

/** The library puts the session's id into the payload and never reads it there. */
function withoutSessionId(payload: AdapterPayload): AdapterPayload {
  if (!payload.session) return payload;
  const { cookie: _, ...session } = payload.session;
  return { ...payload, session };
}
