import { randomUUID } from "node:crypto";
import type { Knex } from "knex";

/** Creates leases, by which one process at a time runs a job. One that dies blocks the others for `durationMs`. */
export function createLeases(knex: Knex) {
  const holder = randomUUID();

  async function acquire(name: string, expires_at: number): Promise<boolean> {
    const take = () =>
      knex("leases")
        .where({ name })
        .where((lease) => lease.where({ holder }).orWhere("expires_at", "<", Date.now()))
        .update({ holder, expires_at });
    if (await take()) return true;
    if (await knex("leases").where({ name }).first("name")) return false;
    // Without an error, which the server would log.
    await knex("leases").insert({ name, holder: "", expires_at: 0 }).onConflict("name").ignore();
    return (await take()) > 0;
  }

  return (name: string, durationMs: number) => {
    let heldUntil = 0;
    return {
      /** Acquires the lease, or renews it after half of its time. Resolves to false while another process holds it. */
      async isHeld(): Promise<boolean> {
        if (Date.now() < heldUntil - durationMs / 2) return true;
        heldUntil = 0;
        const end = Date.now() + durationMs;
        if (await acquire(name, end)) heldUntil = end;
        return heldUntil > 0;
      },

      async release(): Promise<void> {
        if (heldUntil > 0) await knex("leases").where({ name, holder }).delete();
        heldUntil = 0;
      },
    };
  };
}
