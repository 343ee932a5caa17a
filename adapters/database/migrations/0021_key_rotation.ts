import type { Migration } from "./migration.ts";

/** Counts the rotations of each stored key, so processes notice them with a small query. */
export const keyRotation: Migration = {
  name: "0021_key_rotation",
  async up(knex) {
    // PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made it.
    if (await knex.schema.hasColumn("sealed_keys", "version")) return;
    await knex.schema.alterTable("sealed_keys", (table) => {
      table.integer("version").notNullable().defaultTo(1);
    });
  },
};
