import type { Migration } from "./migration.ts";

/** Counts how often a rotated refresh token was used again within the time for retries. */
export const refreshRetries: Migration = {
  name: "0024_refresh_retries",
  async up(knex) {
    // PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made it.
    if (await knex.schema.hasColumn("tokens", "retries")) return;
    await knex.schema.alterTable("tokens", (table) => {
      table.smallint("retries").notNullable().defaultTo(0);
    });
  },
};
