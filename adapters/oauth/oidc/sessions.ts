import type { Knex } from "knex";
import type { Adapter } from "oidc-provider";
import { sha256 } from "../../crypto/ids.ts";
import { isDuplicate } from "../../database/errors.ts";
import type { Database } from "../../database/index.ts";
import { lockUser } from "../../locks.ts";
import { toStored } from "../token-row.ts";

const USER_AGENT_MAX = 255;

/** An ended session stays as a tombstone: a late save restores it neither under its id nor a new one (`replaces`). */
export function sessionAdapter({ knex, transaction }: Database): Partial<Adapter> {
  const active = (key: { id_hash: string } | { uid: string }, query: Knex = knex) =>
    query("sessions").where(key).whereNull("destroyed_at");
  const endById = (id: string, query?: Knex) =>
    active({ id_hash: sha256(id) }, query).update({ destroyed_at: Date.now(), uid: null, payload: "{}" });

  return {
    async upsert(id, { replaces, ...payload }, expiresIn = 0) {
      // Sessions without a user are not stored: they hold nothing, and anyone could fill the table with them.
      if (!payload.accountId) return;
      const id_hash = sha256(id);
      const state = {
        uid: payload.uid ?? null,
        user_id: payload.accountId,
        payload: toStored(payload),
        expires_at: Date.now() + expiresIn * 1000,
        // For the user's list of sessions.
        address: (payload.address as string | undefined) ?? null,
        user_agent: (payload.userAgent as string | undefined)?.slice(0, USER_AGENT_MAX) ?? null,
        credential: (payload.credential as string | undefined) ?? null,
        last_seen_at: payload.seenAt ? (payload.seenAt as number) * 1000 : null,
      };
      const row = { id_hash, ...state, created_at: Date.now() };
      try {
        if (replaces) {
          return await transaction(async (trx) => {
            // Ending all sessions of a user takes this lock, too. Otherwise it could miss the row inserted here.
            await lockUser(trx, payload.accountId as string);
            // A session that has ended gets no new id. Neither does one that has just got another.
            if (await endById(replaces as string, trx)) await trx("sessions").insert(row);
          });
        }
        if (await active({ id_hash }).update(state)) return;
        await knex("sessions").insert(row);
      } catch (error) {
        // The session has ended, or this is a late write under its previous id. Both are dropped.
        if (!isDuplicate(error)) throw error;
      }
    },

    async find(id) {
      const row = await active({ id_hash: sha256(id) }).first("payload");
      return row && { ...JSON.parse(row.payload), jti: id };
    },

    // The id is unknown here. Both callers read only the user of the session.
    async findByUid(uid) {
      const row = await active({ uid }).first("payload");
      return row && JSON.parse(row.payload);
    },

    async destroy(id) {
      await endById(id);
    },
  };
}
