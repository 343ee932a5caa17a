import type { Migration } from "./migration.ts";

/** Drops the denormalized copy of each client. Authentication reads the client's rows instead. */
export const dropClientDocument: Migration = {
  name: "0003_drop_client_document",
  async up(knex) {
    // MariaDB commits each schema change, so a process that died here may already have dropped the column.
    if (!(await knex.schema.hasColumn("clients", "document"))) return;
    // Raw SQL, because Knex copies the whole table on SQLite.
    await knex.raw("alter table clients drop column document");
  },
};
