import type { Database } from "../../database/index.ts";

/** Marks the links that were updated since a time as changed. The previous version doesn't mark those it updates. */
export async function markUpdated({ knex }: Database, organizationId: string, since: number): Promise<void> {
  const columns = ["organization_id", "link_id", "version"];
  const updated = knex("links as l")
    .leftJoin("link_search_changes as c", (join) =>
      join.on("c.organization_id", "l.organization_id").on("c.link_id", "l.id"),
    )
    .where("l.organization_id", organizationId)
    .where("l.updated_at", ">=", since)
    .whereNull("c.link_id")
    .select("l.organization_id", "l.id", "l.version");
  const target = knex.raw(`?? (${columns.map(() => "??").join(", ")})`, ["link_search_changes", ...columns]);
  await knex(target as never)
    .insert(updated as never)
    .onConflict()
    .ignore();
}
