import type { Migration } from "../../../adapters/database/migrations/migration.ts";

/** What a newer version may add while this one runs: a table, and a column and an index of others. */
export const ADDITIVE: Migration = {
  name: "9000_notes",
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
