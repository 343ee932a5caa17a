import type { Database } from "../database.ts";
import { isDuplicate } from "../engine.ts";
import { sha256 } from "../hash.ts";
import { type ModelAdapter, toStored } from "./model.ts";

const USER_AGENT_MAX = 255;

/**
 * Browser sessions. The library saves every session that a request has read; one that was destroyed in the meantime
 * keeps its row as a tombstone, so that it stays destroyed.
 */
export function sessionAdapter({ knex }: Database): ModelAdapter {
  const alive = (key: { id_hash: string } | { uid: string }) =>
    knex("sessions").where(key).whereNull("destroyed_at");
  return {
    async upsert(id, payload, expiresIn = 0) {
      // A browser that hasn't signed in has nothing to be remembered for, and anyone could fill the table with it.
      if (!payload.accountId) return;
      const id_hash = sha256(id);
      const state = {
        uid: payload.uid,
        user_id: payload.accountId,
        payload: toStored(payload),
        expires_at: Date.now() + expiresIn * 1000,
        // For the list of sessions that a person sees.
        address: (payload.address as string | undefined) ?? null,
        user_agent: (payload.userAgent as string | undefined)?.slice(0, USER_AGENT_MAX) ?? null,
        last_seen_at: payload.seenAt ? (payload.seenAt as number) * 1000 : null,
      };
      try {
        if (await alive({ id_hash }).update(state)) return;
        await knex("sessions").insert({ id_hash, ...state, created_at: Date.now() });
      } catch (error) {
        // A tombstone, or a late write of the id that the session had before it got a new one: either is dropped.
        if (!isDuplicate(error)) throw error;
      }
    },

    async find(id) {
      const row = await alive({ id_hash: sha256(id) }).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    // The id cannot be known from here; both callers read only whose session it is.
    async findByUid(uid) {
      const row = await alive({ uid }).first("payload");
      return row && JSON.parse(row.payload);
    },

    async destroy(id) {
      await alive({ id_hash: sha256(id) }).update({ destroyed_at: Date.now(), uid: null, payload: "{}" });
    },
  };
}
