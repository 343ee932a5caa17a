import type { Migration } from "./migration.ts";

/**
 * Keeps only links with an external ID in SQLite's index of external IDs, so the others, which are most, are stored with
 * one index entry less. MariaDB has no partial indexes. PostgreSQL keeps its constraint. To replace it while the previous
 * version creates links, the index has to be built concurrently, which waits for the transactions of all processes that
 * wait for the migration lock. These wait for the migration.
 */
export const linkIndexes: Migration = {
  name: "0029_link_indexes",
  async up(knex, engine) {
    if (engine !== "sqlite") return;
    await knex.raw(
      "create unique index links_external_id on links (organization_id, external_id) where external_id is not null",
    );
    await knex.raw("drop index links_organization_id_external_id_unique");
  },
};
