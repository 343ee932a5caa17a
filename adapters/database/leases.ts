import { randomUUID } from "node:crypto";
import { ifDuplicate } from "./errors.ts";
import type { Database } from "./index.ts";

export type Leases = ReturnType<typeof createLeases>;

export function createLeases({ knex }: Database) {
  const holder = randomUUID();
  return {
    /** Acquires or renews a lease for `durationMs`. Resolves to false while another process holds it. */
    async acquire(name: string, durationMs: number): Promise<boolean> {
      const now = Date.now();
      const state = { holder, expires_at: now + durationMs };
      const available = knex("leases")
        .where({ name })
        .where((lease) => lease.where({ holder }).orWhere("expires_at", "<", now));
      if (await available.update(state)) return true;
      const inserted = knex("leases").insert({ name, ...state });
      return inserted.then(() => true, ifDuplicate(false));
    },

    async release(name: string): Promise<void> {
      await knex("leases").where({ name, holder }).delete();
    },
  };
}
