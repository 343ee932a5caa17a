import type { Database } from "../../database/index.ts";

const PAGE = 1000;
// The pages of one round. The next round continues after them.
const PAGES = 20;
const READ_MS = 5_000;

/** Returns a function that finds organizations with at least `minimum` links, in rounds of a bounded size. */
export function findLarge({ knex, readAside }: Database, minimum: number): () => Promise<string[]> {
  let afterId = "";

  return async () => {
    const found: string[] = [];
    for (let page = 0; page < PAGES; page++) {
      const query = knex("organization_usage")
        .where("organization_id", ">", afterId)
        .groupBy("organization_id")
        .orderBy("organization_id")
        .limit(PAGE)
        .select("organization_id")
        .sum({ links: "links" });
      const rows = await readAside<{ organization_id: string; links: number | string }>(query, READ_MS);
      found.push(...rows.filter(({ links }) => Number(links) >= minimum).map((row) => row.organization_id));
      afterId = rows.length < PAGE ? "" : (rows.at(-1)?.organization_id ?? "");
      if (afterId === "") break;
    }
    return found;
  };
}
