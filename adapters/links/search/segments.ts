import type { Knex } from "knex";
import { newId } from "../../crypto/ids.ts";
import type { Database } from "../../database/index.ts";
import type { LinkSearchChangeRow, LinkSearchSegmentRow } from "../../database/link-tables.ts";
import { BUCKETS } from "./postings.ts";

/** A run of indexed links: those after `afterId`, up to and including `lastId`. */
export type Segment = { id: string; afterId: string; lastId: string };

// Rows of buckets between two turns of the event loop.
const ROWS_PER_STATEMENT = 16;
const CHANGES_PER_STATEMENT = 200;
const READ_MS = 5_000;

/** Returns a query for the segments of an organization, the newest links first. */
export function segmentsOf(knex: Knex, organizationId: string): Knex.QueryBuilder {
  return knex("link_search_segments")
    .where({ organization_id: organizationId })
    .orderBy("after_id", "desc")
    .select({ id: "id", afterId: "after_id", lastId: "last_id" });
}

/** Marks links as changed since they were indexed. Part of the transaction of the change. */
export async function markChanged(trx: Knex, change: LinkSearchChangeRow): Promise<void> {
  await trx("link_search_changes")
    .insert(change)
    .onConflict(["organization_id", "link_id"])
    .merge(["version"]);
}

type NewSegment = {
  organizationId: string;
  afterId: string;
  lastId: string;
  linkIds: string[];
  buckets: Buffer[];
  /** The changes that the segment contains. */
  changes: LinkSearchChangeRow[];
  /** The segment with the same links that it replaces. */
  replaced: Segment | undefined;
};

/**
 * Stores a segment. Its buckets are stored first and in small statements, because nothing reads them before the row of
 * the segment exists. Rejects with a duplicate if another process stored the same links.
 */
export async function storeSegment({ knex, transaction }: Database, segment: NewSegment): Promise<void> {
  const { organizationId, afterId, linkIds, buckets, changes, replaced } = segment;
  const id = newId("lss");
  const rows = buckets.map((grams, bucket) => ({
    segment_id: id,
    bucket,
    organization_id: organizationId,
    grams,
  }));
  for (let start = 0; start < BUCKETS; start += ROWS_PER_STATEMENT) {
    await knex("link_search_grams").insert(rows.slice(start, start + ROWS_PER_STATEMENT));
  }
  const row: LinkSearchSegmentRow = {
    id,
    organization_id: organizationId,
    after_id: afterId,
    last_id: segment.lastId,
    link_ids: linkIds.join(","),
    created_at: Date.now(),
  };
  await transaction(async (trx) => {
    if (replaced) await trx("link_search_segments").where({ id: replaced.id }).delete();
    await trx("link_search_segments").insert(row);
    // A link that changed in the meantime has another version, and stays marked.
    for (let start = 0; start < changes.length; start += CHANGES_PER_STATEMENT) {
      const indexed = changes.slice(start, start + CHANGES_PER_STATEMENT);
      await trx("link_search_changes")
        .where({ organization_id: organizationId })
        .whereIn(
          ["link_id", "version"],
          indexed.map(({ link_id, version }) => [link_id, version]),
        )
        .delete();
    }
  });
  if (replaced) await removeBuckets(knex, replaced.id);
}

/** Removes buckets without a segment, which a process that died or lost a race leaves behind. */
export async function removeOrphans({ knex, readAside }: Database, organizationId: string): Promise<void> {
  const stored = knex("link_search_segments").where({ organization_id: organizationId }).select("id");
  const query = knex("link_search_grams")
    .where({ organization_id: organizationId })
    .whereNotIn("segment_id", stored)
    .distinct("segment_id");
  const orphans = await readAside<{ segment_id: string }>(query, READ_MS);
  for (const { segment_id } of orphans) await removeBuckets(knex, segment_id);
}

async function removeBuckets(knex: Knex, segmentId: string): Promise<void> {
  for (let start = 0; start < BUCKETS; start += ROWS_PER_STATEMENT) {
    await knex("link_search_grams")
      .where({ segment_id: segmentId })
      .whereBetween("bucket", [start, start + ROWS_PER_STATEMENT - 1])
      .delete();
  }
}
