import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url
const DESCRIPTION = 100;

/** Adds the devices that users have signed in from, and the failed sign-ins of each username. */
export const signInProtection: Migration = {
  name: "0018_sign_in_protection",
  async up(knex, engine) {
    await createKnownDevices(knex, engine);
    await createSignInFailures(knex, engine);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made the first one.

async function createKnownDevices(knex: Knex, engine: Engine) {
  await createTable(knex, "known_devices", (table) => {
    keyColumn(table, "user_id", ID, engine).notNullable();
    keyColumn(table, "token_hash", HASH, engine).notNullable();
    table.string("description", DESCRIPTION).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("last_used_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    // Wrong passwords since the last successful sign-in.
    table.integer("failures").notNullable().defaultTo(0);
    table.primary(["user_id", "token_hash"]);
  });
}

async function createSignInFailures(knex: Knex, engine: Engine) {
  await createTable(knex, "sign_in_failures", (table) => {
    // SHA-256 of the normalized username, of existing and unknown users alike.
    keyColumn(table, "account_key", HASH, engine).primary();
    // Wrong passwords from unknown devices since the last successful sign-in from one.
    table.integer("failures").notNullable();
    table.bigInteger("next_attempt_at").notNullable();
    // Null for existing users.
    table.bigInteger("expires_at").index();
  });
}
