import type { Migration } from "./migration.ts";

/** Drops the copy of each client that authentication read: it reads the rows themselves now. */
export const dropClientDocument: Migration = {
  name: "0003_drop_client_document",
  async up(knex) {
    // MariaDB commits at each change of the schema: a process that died here may have dropped the column already.
    if (!(await knex.schema.hasColumn("clients", "document"))) return;
    // Not by Knex, which copies the whole table in SQLite.
    await knex.raw("alter table clients drop column document");
  },
};
