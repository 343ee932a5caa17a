import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../database/index.ts";
import { type ChainedRow, follows, RECORD_COLUMNS, retentionMs } from "./chain-record.ts";

const BATCH = 100;
const PAUSE_MS = 10;

/** Keeps entries that aren't chained, or aren't what was chained. The last deleted one lets the rest be verified. */
export async function purgeAuditLogs(
  database: Database,
  mayContinue: () => Promise<boolean>,
): Promise<number> {
  let total = 0;
  // Logs whose expired entries are kept must not keep the others from being purged.
  const kept = new Set<string>();
  while (await mayContinue()) {
    const logs = await findExpired(database, kept);
    if (logs.size === 0) break;
    for (const id of logs) {
      const deleted = await purgeLog(database, id);
      if (deleted === 0) kept.add(id);
      total += deleted;
    }
    await sleep(PAUSE_MS);
  }
  return total;
}

async function findExpired({ knex }: Database, kept: Set<string>): Promise<Set<string>> {
  const expired = knex("events")
    .whereRaw("audited = true and seq is not null")
    .where("expires_at", "<=", Date.now())
    .whereNotIn("organization_id", [...kept])
    .orderBy("expires_at")
    .limit(BATCH);
  return new Set(await expired.pluck("organization_id"));
}

function purgeLog({ transaction }: Database, organization_id: string): Promise<number> {
  return transaction(async (trx) => {
    const head = await trx("audit_chains").where({ organization_id }).forUpdate().first();
    if (!head) return 0;
    const rows: (ChainedRow & { expires_at: number })[] = await trx("events")
      .where({ organization_id })
      .where("seq", ">", head.purged_seq)
      .orderBy("seq")
      .limit(BATCH)
      .select(...RECORD_COLUMNS, "seq", "hash", "expires_at");
    let last = { seq: head.purged_seq, hash: head.purged_hash };
    for (const row of rows) {
      // The hash covers the time of an entry, not its expiry. Every plan keeps entries for some time.
      const expiresAt = Math.max(row.expires_at, row.created_at + retentionMs("free"));
      if (expiresAt > Date.now() || !follows(last, row)) break;
      last = row;
    }
    if (last.seq === head.purged_seq) return 0;
    await trx("audit_chains")
      .where({ organization_id })
      .update({ purged_seq: last.seq, purged_hash: last.hash });
    return trx("events")
      .where({ organization_id })
      .where("seq", ">", head.purged_seq)
      .where("seq", "<=", last.seq)
      .delete();
  });
}
