import type { Migration } from "../../../adapters/database/migrations/migration.ts";

/** A column that a newer version fills in for each delivery. */
export const REWRITING: Migration = {
  name: "9000_delivery_regions",
  changes: "Adds regions to webhook deliveries.",
  rewrites: () => ["deliveries"],
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    await knex.schema.alterTable("deliveries", (table) => table.string("region", 10));
    await knex("deliveries").update({ region: "eu" } as never);
    await knex.schema.alterTable("deliveries", (table) => table.index("region"));
  },
};

/** What a newer version may add while this one runs: a table, and a column and an index of others. */
export const ADDITIVE: Migration = {
  name: "9001_notes",
  changes: "Adds notes to links.",
  rewrites: () => [],
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    await knex.schema.createTable("link_notes", (table) => {
      table.string("link_id", 40).primary();
      table.text("note").notNullable();
    });
    for (const name of ["links", "tokens", "grants", "organizations"] as const)
      await knex.schema.alterTable(name, (table) => table.string("note_language", 10).index());
  },
};
