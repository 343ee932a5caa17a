import type { Database } from "./index.ts";

/**
 * Deletes a batch of expired entries from the start of each audit log, and remembers the last one so that the rest can
 * still be verified. Never deletes an entry that is not chained yet. Resolves to the number of deleted entries.
 */
export async function purgeAuditLogs({ knex, transaction }: Database, batch: number): Promise<number> {
  const expired = knex("events")
    .whereRaw("audited = true and seq is not null")
    .where("expires_at", "<=", Date.now())
    .orderBy("expires_at")
    .limit(batch);
  const logs = new Set(await expired.pluck("organization_id"));
  let deleted = 0;
  for (const organization_id of logs) {
    deleted += await transaction(async (trx) => {
      const head = await trx("audit_chains").where({ organization_id }).forUpdate().first("purged_seq");
      if (!head) return 0;
      const first = await trx("events")
        .where({ organization_id })
        .where("seq", ">", head.purged_seq)
        .orderBy("seq")
        .limit(batch)
        .select("seq", "hash", "expires_at");
      const firstKept = first.findIndex(({ expires_at }) => expires_at > Date.now());
      const last = (firstKept < 0 ? first : first.slice(0, firstKept)).at(-1);
      if (!last) return 0;
      await trx("audit_chains")
        .where({ organization_id })
        .update({ purged_seq: last.seq as number, purged_hash: last.hash as string });
      return trx("events")
        .where({ organization_id })
        .where("seq", ">", head.purged_seq)
        .where("seq", "<=", last.seq)
        .delete();
    });
  }
  return deleted;
}
