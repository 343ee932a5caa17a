import { randomUUID } from "node:crypto";
import { isDuplicate } from "./engine.ts";
import type { Database } from "./index.ts";

/** Named locks for jobs that one process at a time runs on behalf of all. */
export type Leases = {
  /** Acquires or renews a lease for `durationMs`. Resolves to false while another process holds it. */
  acquire(name: string, durationMs: number): Promise<boolean>;
  release(name: string): Promise<void>;
};

/** Creates the leases of this process. */
export function createLeases({ knex }: Database): Leases {
  const holder = randomUUID();
  return {
    async acquire(name, durationMs) {
      const now = Date.now();
      const state = { holder, expires_at: now + durationMs };
      const available = knex("leases")
        .where({ name })
        .where((lease) => lease.where({ holder }).orWhere("expires_at", "<", now));
      if (await available.update(state)) return true;
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
