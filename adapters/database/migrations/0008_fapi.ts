import type { Migration } from "./migration.ts";

export const fapi: Migration = {
  name: "0008_fapi",
  changes: "Adds which clients follow the FAPI 2.0 Security Profile.",
  rewrites: () => [],
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    if (await knex.schema.hasColumn("clients", "fapi")) return;
    await knex.schema.alterTable("clients", (table) => {
      table.boolean("fapi").notNullable().defaultTo(false);
    });
  },
};
