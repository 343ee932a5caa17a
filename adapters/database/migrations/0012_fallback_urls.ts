import type { Migration } from "./migration.ts";

export const fallbackUrls: Migration = {
  name: "0012_fallback_urls",
  changes: "Adds fallback URLs, where visitors go when a short link is no longer available.",
  rewrites: () => [],
  oldestCompatible: "0007_webhooks",
  async up(knex) {
    for (const name of ["links", "organizations"]) {
      if (await knex.schema.hasColumn(name, "fallback_url")) continue;
      await knex.schema.alterTable(name, (table) => {
        table.text("fallback_url");
      });
    }
  },
};
