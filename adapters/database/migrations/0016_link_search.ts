import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
// The types that hold more than 64 KB.
const BYTES = { sqlite: "blob", postgres: "bytea", mysql: "mediumblob" };

/** Adds the index that the search for links uses. It is filled in the background. */
export const linkSearch: Migration = {
  name: "0016_link_search",
  async up(knex, engine) {
    await createSegments(knex, engine);
    await createGrams(knex, engine);
    await createChanges(knex, engine);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function createSegments(knex: Knex, engine: Engine) {
  await createTable(knex, "link_search_segments", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    // The segment contains the links after this id, up to and including the last one.
    keyColumn(table, "after_id", ID, engine).notNullable();
    keyColumn(table, "last_id", ID, engine).notNullable();
    table.text("link_ids", "mediumtext").notNullable();
    table.bigInteger("created_at").notNullable();
    // Two processes can't index the same links.
    table.unique(["organization_id", "after_id"]);
  });
}

async function createGrams(knex: Knex, engine: Engine) {
  await createTable(knex, "link_search_grams", (table) => {
    keyColumn(table, "segment_id", ID, engine).notNullable();
    table.integer("bucket").notNullable();
    keyColumn(table, "organization_id", ID, engine).notNullable().index();
    table.specificType("grams", BYTES[engine]).notNullable();
    table.primary(["segment_id", "bucket"]);
  });
}

async function createChanges(knex: Knex, engine: Engine) {
  await createTable(knex, "link_search_changes", (table) => {
    // Links whose texts may have changed since they were indexed, and the version that they had then.
    keyColumn(table, "organization_id", ID, engine).notNullable();
    keyColumn(table, "link_id", ID, engine).notNullable();
    table.integer("version").notNullable();
    table.primary(["organization_id", "link_id"]);
  });
}
