import { randomUUID } from "node:crypto";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";

/** The right to do something that one process at a time does for all of them. */
export type Leases = {
  /** Takes it, or prolongs it; false while another process has it. One that dies loses it after `forMs`. */
  take(name: string, forMs: number): Promise<boolean>;
  release(name: string): Promise<void>;
};

/** The leases of one process. */
export function createLeases({ knex }: Database): Leases {
  const holder = randomUUID();
  return {
    async take(name, forMs) {
      const now = Date.now();
      const state = { holder, expires_at: now + forMs };
      const free = knex("leases")
        .where({ name })
        .where((open) => open.where({ holder }).orWhere("expires_at", "<", now));
      if (await free.update(state)) return true;
      try {
        await knex("leases").insert({ name, ...state });
        return true;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },

    async release(name) {
      await knex("leases").where({ name, holder }).delete();
    },
  };
}
