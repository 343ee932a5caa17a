import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const CLIENT_ID = 255;

/** Adds who created links and webhooks with which app, and which apps members may authorize. */
export const creators: Migration = {
  name: "0014_creators",
  async up(knex, engine) {
    await addMemberApps(knex);
    await createApprovedApps(knex, engine);
    await addCreators(knex, engine);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function addMemberApps(knex: Knex) {
  if (await knex.schema.hasColumn("organizations", "member_apps")) return;
  await knex.schema.alterTable("organizations", (table) => {
    // Which apps the role `member` may authorize: `any`, `approved` or `none`.
    table.string("member_apps", 16).notNullable().defaultTo("any");
  });
}

async function createApprovedApps(knex: Knex, engine: Engine) {
  await createTable(knex, "approved_apps", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    keyColumn(table, "client_id", CLIENT_ID, engine).notNullable();
    keyColumn(table, "approved_by", ID, engine).notNullable(); // a user id or `operator`
    table.bigInteger("created_at").notNullable();
    table.unique(["organization_id", "client_id"]);
  });
}

async function addCreators(knex: Knex, engine: Engine) {
  if (!(await knex.schema.hasColumn("links", "created_via"))) {
    await knex.schema.alterTable("links", (table) => {
      // The client that acted for the user in `created_by`. Null if no client did, and in links of earlier versions.
      keyColumn(table, "created_via", CLIENT_ID, engine);
    });
  }
  if (await knex.schema.hasColumn("webhooks", "created_via")) return;
  await knex.schema.alterTable("webhooks", (table) => {
    // As in links. Both are null in webhooks of earlier versions.
    keyColumn(table, "created_by", CLIENT_ID, engine);
    keyColumn(table, "created_via", CLIENT_ID, engine);
  });
}
