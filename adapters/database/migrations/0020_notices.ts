import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const KIND = 40;
const ADDRESS = 254; // RFC 5321 §4.5.3.1.3: a path has 256 characters with its angle brackets

/** Adds security notices, email addresses of users, and the queue of emails. */
export const notices: Migration = {
  name: "0020_notices",
  async up(knex, engine) {
    await createNotices(knex, engine);
    await addAddresses(knex);
    await createMails(knex, engine);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function createNotices(knex: Knex, engine: Engine) {
  await createTable(knex, "notices", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "user_id", ID, engine).notNullable();
    table.string("kind", KIND).notNullable();
    table.text("data").notNullable(); // JSON without secrets
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("dismissed_at");
    table.index(["user_id", "kind"]);
  });
}

async function addAddresses(knex: Knex) {
  // The address of a user, once confirmed; the address that a confirmation link confirms; where an invitation was sent.
  for (const name of ["users", "one_time_links", "invitations"] as const) {
    if (await knex.schema.hasColumn(name, "email")) continue;
    await knex.schema.alterTable(name, (table) => {
      table.string("email", ADDRESS);
    });
  }
}

async function createMails(knex: Knex, engine: Engine) {
  await createTable(knex, "mails", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "user_id", ID, engine).index(); // whom it is for or from; null until it is known
    table.string("recipient", ADDRESS).index(); // null until it is known
    table.string("kind", KIND).notNullable();
    table.text("data").notNullable(); // JSON without secrets
    table.text("secret"); // an encrypted token
    table.integer("attempts").notNullable().defaultTo(0);
    table.bigInteger("due_at").index(); // null once sent
    table.string("leased_by", ID);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
  });
}
