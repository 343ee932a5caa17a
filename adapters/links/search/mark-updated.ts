import type { Database } from "../../database/index.ts";
import type { LinkRow } from "../../database/link-tables.ts";

// Links between two turns of other requests.
const PAGE = 4096;
const ROWS_PER_STATEMENT = 500;
const READ_MS = 30_000;

/** Marks the links that were updated since a time as changed. The previous version doesn't mark those it updates. */
export async function markUpdated(
  { knex, readAside }: Database,
  organizationId: string,
  since: number,
): Promise<void> {
  for (let afterId = ""; ; ) {
    const query = knex("links")
      .where({ organization_id: organizationId })
      .where("id", ">", afterId)
      .orderBy("id")
      .limit(PAGE);
    const links = await readAside<Pick<LinkRow, "id" | "version" | "updated_at">>(
      query.select("id", "version", "updated_at"),
      READ_MS,
    );
    const marks = links
      .filter(({ updated_at }) => updated_at >= since)
      .map(({ id, version }) => ({ organization_id: organizationId, link_id: id, version }));
    for (let start = 0; start < marks.length; start += ROWS_PER_STATEMENT) {
      const rows = marks.slice(start, start + ROWS_PER_STATEMENT);
      // A link that is marked already may have been updated again since it was read.
      await knex("link_search_changes").insert(rows).onConflict(["organization_id", "link_id"]).ignore();
    }
    const last = links.at(-1);
    if (!last || links.length < PAGE) return;
    afterId = last.id;
  }
}
