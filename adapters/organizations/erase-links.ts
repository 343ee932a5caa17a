import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import { ERASED } from "../links/row.ts";

// Requests that were authorized before the deletion have ended by then.
const AFTER_MS = 60_000;
const LINKS = 200;
const PAUSE_MS = 10;
const READ_MS = 30_000;

/** Erases all but slug and destination. The usage is deleted last, and marks what is left to do. */
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

async function eraseLinksOf(
  knex: Knex,
  organizationId: string,
  mayContinue: () => Promise<boolean>,
): Promise<boolean> {
  const own = { organization_id: organizationId };
  let afterId = "";
  for (let count = LINKS; count === LINKS; await sleep(PAUSE_MS)) {
    if (!(await mayContinue())) return false;
    const next = knex("links").where(own).where("id", ">", afterId).orderBy("id").limit(LINKS);
    const links = await next.select("id", "deleted_at");
    const ids = links.filter(({ deleted_at }) => deleted_at === null).map(({ id }) => id);
    if (ids.length > 0) {
      await knex("links")
        .whereIn("id", ids)
        .update({ ...ERASED, deleted_at: Date.now() });
    }
    afterId = links.at(-1)?.id ?? afterId;
    count = links.length;
  }
  await knex("organization_usage").where(own).delete();
  return true;
}
