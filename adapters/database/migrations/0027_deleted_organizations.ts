import { createOnce } from "./create-table.ts";
import type { Migration } from "./migration.ts";

/** Adds an index of deleted organizations, whose links are erased in the background. */
export const deletedOrganizations: Migration = {
  name: "0027_deleted_organizations",
  async up(knex) {
    const statements = knex.schema.alterTable("organizations", (table) => table.index("deleted_at")).toSQL();
    for (const { sql } of statements) await createOnce(knex, sql);
  },
};
