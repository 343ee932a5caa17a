import type { Knex } from "knex";
import type { Engine } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { insertUsage, readUsage, type Usage } from "./usage.ts";

const COUNTED_COLUMNS = ["slug", "url", "title", "tags", "external_id", "metadata"];
const BYTES = { sqlite: "length(cast(?? as blob))", postgres: "octet_length(??)", mysql: "length(??)" };

/** Counts the links of an organization again if its usage differs from them. */
export async function recountUsage(
  { knex, engine, transaction }: Database,
  organizationId: string,
): Promise<void> {
  if (isSame(await readUsage(knex, organizationId), await countLinks(knex, engine, organizationId))) return;
  await transaction(async (trx) => {
    await trx("organizations").where({ id: organizationId }).forUpdate().first("id");
    const slots = () => trx("organization_usage").where({ organization_id: organizationId });
    const locked = await slots().orderBy("slot").forUpdate().select("slot");
    if (locked.length === 0) await insertUsage(trx, organizationId);
    // Concurrent creations and deletions wait for the locked rows.
    const { links, link_bytes } = await countLinks(trx, engine, organizationId);
    await slots().update({ links: 0, link_bytes: 0, max_links: 0, max_link_bytes: 0 });
    const first = { links, link_bytes, max_links: links, max_link_bytes: link_bytes };
    await slots().where({ slot: 0 }).update(first);
  });
}

async function countLinks(q: Knex, engine: Engine, organizationId: string): Promise<Usage> {
  const bytes = COUNTED_COLUMNS.map((column) => q.raw(`coalesce(${BYTES[engine]}, 0)`, [column]));
  const sum = q.raw(`coalesce(sum(${bytes.map(() => "?").join(" + ")}), 0) as link_bytes`, bytes as never);
  const [row] = (await q("links")
    .where({ organization_id: organizationId })
    .whereNull("deleted_at")
    .select(q.raw("count(*) as links"), sum as never)) as unknown as Usage[];
  return { links: Number(row?.links), link_bytes: Number(row?.link_bytes) };
}

function isSame(one: Usage, other: Usage): boolean {
  return one.links === other.links && one.link_bytes === other.link_bytes;
}
