import { setImmediate as nextTurn } from "node:timers/promises";
import type { Knex } from "knex";
import type { Plan } from "../../resources/plans.ts";
import { type Engine, rowsOfJson } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { AuditChainRow } from "../database/tables/events.ts";
import { newHead, nextEntry, RECORD_COLUMNS, type UnchainedRow } from "./chain-record.ts";

export type AuditChain = ReturnType<typeof createAuditChain>;

// Small, because on SQLite a batch occupies the event loop, and transactions of other requests wait for it.
const BATCH = 200;
const BATCH_BYTES = 128 * 1024;
const LEASE_MS = 15_000;

/**
 * Chains the entries of each audit log by hash. Entries are written without a place in the chain, so that concurrent
 * changes of an organization don't wait for each other, and get one shortly after.
 */
export function createAuditChain({ knex, engine, transaction, lease: leaseOf }: Database) {
  const lease = leaseOf("audit-chain", LEASE_MS);

  /** Queries the entries that wait for a place in the chain, served by an index of only these. */
  function waiting(q: Knex, organizationId?: string) {
    const query = q("events").whereRaw(
      engine === "mysql" ? "unchained = 1" : "audited = true and seq is null",
    );
    // The expression keeps the planner from an index of the organization's whole log.
    return organizationId === undefined
      ? query
      : query.whereRaw("coalesce(organization_id, '') = ?", [organizationId]);
  }

  async function hasWaiting(organizationId?: string): Promise<boolean> {
    return (await waiting(knex, organizationId).first("id")) !== undefined;
  }

  /**
   * Chains one batch. The locks of the heads decide between processes: one that waits for them reads which entries are
   * still waiting afterwards.
   */
  function appendBatch(organizationId?: string): Promise<void> {
    return transaction(async (trx) => {
      // IDs sort by time, so entries that wait together are chained in the order in which they happened.
      const found: Waiting[] = await waiting(trx, organizationId)
        .orderBy("id")
        .limit(BATCH)
        .select("id", "organization_id", trx.raw("octet_length(data) as bytes"));
      const batch = firstOf(found, BATCH_BYTES, ({ bytes }) => bytes);
      const logs = [...new Set(batch.map((row) => row.organization_id))].sort();
      const heads = await lockHeads(trx, logs);
      const ids = batch.map(({ id }) => id);
      const rows: UnchainedRow[] = await trx("events")
        .whereIn("id", ids)
        .whereNull("seq")
        .orderBy("id")
        .select(...RECORD_COLUMNS, "expires_at");
      if (rows.length === 0) return;
      const plans = await plansOf(trx, logs);
      const chained = rows.map((row) => {
        const head = heads.get(row.organization_id) as AuditChainRow;
        const entry = nextEntry(head, row, plans.get(row.organization_id));
        heads.set(row.organization_id, { ...head, ...entry });
        return { id: row.id, ...entry };
      });
      await trx.raw(storePlacesSql(engine), { rows: JSON.stringify(chained) });
      await trx("audit_chains")
        .insert([...heads.values()])
        .onConflict("organization_id")
        .merge(["seq", "hash", "expires_at"]);
    });
  }

  return {
    /** Chains all waiting entries, in one process at a time. `stop` ends it after the current batch. */
    async appendAll(stop?: AbortSignal): Promise<void> {
      while (!stop?.aborted && (await hasWaiting()) && (await lease.isHeld())) {
        await appendBatch();
        await nextTurn();
      }
    },

    /** Chains the waiting entries of one log, or of all, whichever process holds the lease. */
    async append(organizationId?: string): Promise<void> {
      while (await hasWaiting(organizationId)) await appendBatch(organizationId);
    },

    release: lease.release,
  };
}

/** Locks the heads of some logs until the transaction ends, and creates missing ones. */
async function lockHeads(trx: Knex.Transaction, logs: string[]): Promise<Map<string, AuditChainRow>> {
  // In one order, so that processes that chain entries of the same logs don't lock each other out.
  const lock = () =>
    trx("audit_chains").whereIn("organization_id", logs).orderBy("organization_id").forUpdate();
  let heads = await lock();
  if (heads.length < logs.length) {
    await trx("audit_chains").insert(logs.map(newHead)).onConflict("organization_id").ignore();
    heads = await lock();
  }
  return new Map(heads.map((head) => [head.organization_id, head]));
}

type Waiting = { id: string; organization_id: string; bytes: number };

/** Returns the first entries that have up to a size together, at least one. */
export function firstOf<Entry>(entries: Entry[], max: number, sizeOf: (entry: Entry) => number): Entry[] {
  let total = 0;
  const end = entries.findIndex((entry) => {
    total += sizeOf(entry);
    return total > max;
  });
  return end === -1 ? entries : entries.slice(0, Math.max(1, end));
}

async function plansOf(trx: Knex.Transaction, logs: string[]): Promise<Map<string, Plan>> {
  const organizations = await trx("organizations").whereIn("id", logs).select("id", "plan");
  return new Map(organizations.map(({ id, plan }) => [id, plan]));
}

/** Returns SQL that stores the places of several entries, the parameter `:rows`. */
function storePlacesSql(engine: Engine): string {
  const added = rowsOfJson(engine, { id: "text", seq: "bigint", hash: "text", expires_at: "bigint" });
  return engine === "mysql"
    ? `update ${added} straight_join events e on e.id = added.id
        set e.seq = added.seq, e.hash = added.hash, e.expires_at = added.expires_at`
    : `update events set seq = added.seq, hash = added.hash, expires_at = added.expires_at
        from ${added} where events.id = added.id`;
}
