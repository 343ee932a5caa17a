import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const SLOTS = 8;
const BYTES = { sqlite: "length(cast(?? as blob))", postgres: "octet_length(??)", mysql: "length(??)" };
const COUNTED_COLUMNS = ["slug", "url", "title", "tags", "external_id", "metadata"];

/** Adds the usage of each organization, which is counted with each change, and the quotas that it may not exceed. */
export const quotas: Migration = {
  name: "0015_quotas",
  async up(knex, engine) {
    await createUsage(knex, engine);
    // A process that died here may already have counted some links.
    await knex("organization_usage").delete();
    await countLinks(knex, engine);
  },
};

async function createUsage(knex: Knex, engine: Engine) {
  await createTable(knex, "organization_usage", (table) => {
    keyColumn(table, "organization_id", ID, engine).notNullable();
    table.integer("slot").notNullable();
    table.bigInteger("links").notNullable();
    table.bigInteger("link_bytes").notNullable();
    // The slot's share of the quota. Assigned again when it is used up, and when the plan changes.
    table.bigInteger("max_links").notNullable();
    table.bigInteger("max_link_bytes").notNullable();
    table.primary(["organization_id", "slot"]);
    table.check("links <= max_links and link_bytes <= max_link_bytes", [], "organization_usage_quota");
  });
}

/** Counts the existing links in the first slot. No slot has a share of the quota until the next link is created. */
async function countLinks(knex: Knex, engine: Engine) {
  const bytes = COUNTED_COLUMNS.map((column) => knex.raw(`coalesce(${BYTES[engine]}, 0)`, [`l.${column}`]));
  const sum = knex.raw(`coalesce(sum(${bytes.map(() => "?").join(" + ")}), 0)`, bytes as never);
  const counts = () =>
    knex("organizations as o")
      .leftJoin("links as l", (join) => join.on("l.organization_id", "o.id").onNull("l.deleted_at"))
      .groupBy("o.id");
  const columns = ["organization_id", "slot", "links", "link_bytes", "max_links", "max_link_bytes"];
  const target = knex.raw(`?? (${columns.map(() => "??").join(", ")})`, ["organization_usage", ...columns]);
  const total = knex.raw("count(??)", ["l.id"]);
  await knex(target as never).insert(counts().select("o.id", knex.raw("0"), total, sum, total, sum) as never);
  const zeros = Array.from({ length: 4 }, () => knex.raw("0"));
  for (let slot = 1; slot < SLOTS; slot++) {
    await knex(target as never).insert(
      knex("organizations").select("id", knex.raw("?", [slot]), ...zeros) as never,
    );
  }
}
