import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url

/** Adds passkeys, authenticator apps and recovery codes, and which credential started a session. */
export const secondFactors: Migration = {
  name: "0019_second_factors",
  async up(knex, engine) {
    await createTotpSecrets(knex, engine);
    await createRecoveryCodes(knex, engine);
    await createPasskeys(knex, engine);
    await extendSessions(knex, engine);
    await addPolicy(knex);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function createTotpSecrets(knex: Knex, engine: Engine) {
  await createTable(knex, "totp_secrets", (table) => {
    keyColumn(table, "user_id", ID, engine).primary();
    table.string("secret", 255).notNullable(); // encrypted
    table.bigInteger("created_at").notNullable();
    table.bigInteger("confirmed_at"); // null until the user has entered a code
    table.bigInteger("last_step"); // the newest time step whose code was accepted
    table.bigInteger("last_used_at");
  });
}

async function createRecoveryCodes(knex: Knex, engine: Engine) {
  await createTable(knex, "recovery_codes", (table) => {
    keyColumn(table, "code_hash", HASH, engine).primary();
    keyColumn(table, "user_id", ID, engine).notNullable().index();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("used_at");
  });
}

async function createPasskeys(knex: Knex, engine: Engine) {
  await createTable(knex, "passkeys", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "user_id", ID, engine).notNullable().index();
    // A credential ID has up to 1,023 bytes (WebAuthn §4), too many for an index.
    keyColumn(table, "credential_hash", HASH, engine).notNullable().unique();
    table.text("credential_id").notNullable();
    table.text("public_key").notNullable();
    table.bigInteger("counter").notNullable();
    table.string("transports", 255).notNullable();
    table.boolean("synced").notNullable();
    table.string("name", 100).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("last_used_at");
  });
}

async function extendSessions(knex: Knex, engine: Engine) {
  if (await knex.schema.hasColumn("sessions", "credential")) return;
  await knex.schema.alterTable("sessions", (table) => {
    // The passkey or, hashed, the SSO identity that started the session.
    keyColumn(table, "credential", HASH, engine);
  });
}

async function addPolicy(knex: Knex) {
  if (await knex.schema.hasColumn("organizations", "require_second_factor")) return;
  await knex.schema.alterTable("organizations", (table) => {
    table.boolean("require_second_factor").notNullable().defaultTo(false);
  });
}
