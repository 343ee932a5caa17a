import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import { ERASED } from "../links/row.ts";

// Requests that were authorized before the deletion have ended by then, and the indexer has stored its last segment.
const AFTER_MS = 60_000;
const LINKS = 200;
// Rows of the search index have some kilobytes.
const INDEX_ROWS = 32;
const PAUSE_MS = 10;
const READ_MS = 30_000;

const INDEX_TABLES = [
  { table: "link_search_segments", key: ["id"] },
  { table: "link_search_grams", key: ["segment_id", "bucket"] },
  { table: "link_search_changes", key: ["organization_id", "link_id"] },
] as const;

/**
 * Erases the content of the links of deleted organizations like that of deleted links, in small batches: their rows remain
 * with slug and destination. The usage is deleted last, and marks what is left to do.
 */
export async function eraseLinks(database: Database, mayContinue: () => Promise<boolean>): Promise<void> {
  const { knex, readAside } = database;
  for (;;) {
    const query = knex("organizations as o")
      .join("organization_usage as u", "u.organization_id", "o.id")
      .where("o.deleted_at", "<=", Date.now() - AFTER_MS)
      .limit(1)
      .select("o.id");
    const [organization] = await readAside<{ id: string }>(query, READ_MS);
    if (!organization || !(await mayContinue())) return;
    if (!(await eraseLinksOf(knex, organization.id, mayContinue))) return;
  }
}

/** Returns whether it could finish. */
async function eraseLinksOf(
  knex: Knex,
  organizationId: string,
  mayContinue: () => Promise<boolean>,
): Promise<boolean> {
  const own = { organization_id: organizationId };
  const isErased = await inBatches(mayContinue, LINKS, eraseBatch(knex, organizationId));
  if (!isErased) return false;
  for (const { table, key } of INDEX_TABLES) {
    const isEmpty = await inBatches(mayContinue, INDEX_ROWS, async () => {
      const rows: Record<string, string>[] = await knex(table)
        .where(own)
        .limit(INDEX_ROWS)
        .select(...key);
      const keys = rows.map((row) => key.map((column) => row[column] as string));
      if (keys.length > 0) await knex(table).whereIn(key, keys).delete();
      return rows.length;
    });
    if (!isEmpty) return false;
  }
  await knex("organization_usage").where(own).delete();
  return true;
}

/** Returns a function that erases the next links, oldest first, and resolves to how many it looked at. */
function eraseBatch(knex: Knex, organizationId: string): () => Promise<number> {
  let afterId = "";
  return async () => {
    const links = await knex("links")
      .where({ organization_id: organizationId })
      .where("id", ">", afterId)
      .orderBy("id")
      .limit(LINKS)
      .select("id", "deleted_at");
    const ids = links.filter(({ deleted_at }) => deleted_at === null).map(({ id }) => id);
    if (ids.length > 0) {
      await knex("links")
        .whereIn("id", ids)
        .update({ ...ERASED, deleted_at: Date.now() });
    }
    afterId = links.at(-1)?.id ?? afterId;
    return links.length;
  };
}

/** Calls `next` until it finds less than a whole batch. Resolves to false if it may not continue. */
async function inBatches(
  mayContinue: () => Promise<boolean>,
  size: number,
  next: () => Promise<number>,
): Promise<boolean> {
  while (await mayContinue()) {
    if ((await next()) < size) return true;
    await sleep(PAUSE_MS);
  }
  return false;
}
