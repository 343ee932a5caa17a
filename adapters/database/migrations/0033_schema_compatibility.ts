import { keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const NAME = 255; // Knex's length of a migration's name

/** Adds a record of which earlier versions can use the schema, so these can start after an upgrade. */
export const schemaCompatibility: Migration = {
  name: "0033_schema_compatibility",
  async up(knex, engine) {
    await createTable(knex, "schema_compatibility", (table) => {
      keyColumn(table, "migration", NAME, engine).primary();
      // The oldest schema whose versions can use this one. Null if none can.
      keyColumn(table, "oldest_compatible", NAME, engine);
      // The version of linkgate that applied the migration.
      table.string("version", 64).notNullable();
    });
  },
};
