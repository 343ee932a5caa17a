import { createTable, HASH, ID, type Migration } from "./migration.ts";

const EMAIL = 254; // RFC 5321 §4.5.3.1.3: a path has 256 characters with its angle brackets
const KIND = 40;

export const accounts: Migration = {
  name: "0002_accounts",
  changes: "Creates the tables of accounts: users, identities, second factors, known devices and mails.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "users", (table, key) => {
      key("id", ID).primary();
      table.string("username", 64).notNullable();
      key("username_key", 64).notNullable().unique();
      table.string("password_hash", 255);
      table.bigInteger("created_at").notNullable();
      table.bigInteger("disabled_at");
      table.string("disabled_reason", 255);
      table.string("email", EMAIL); // once confirmed
    });

    await createTable(knex, engine, "identities", (table, key) => {
      // A user at an identity provider. Only issuer and subject are unique and stable (OIDC Core §5.7).
      key("issuer", 255).notNullable();
      key("subject", 255).notNullable();
      key("user_id", ID).notNullable().index();
      table.string("label", 255);
      table.bigInteger("created_at").notNullable();
      table.primary(["issuer", "subject"]);
    });

    await createTable(knex, engine, "one_time_links", (table, key) => {
      key("id_hash", HASH).primary();
      table.string("purpose", 32).notNullable();
      key("user_id", ID).notNullable().index();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("used_at");
      key("created_by", ID).index();
      key("organization_id", ID);
      table.string("email", EMAIL); // that the link confirms
    });

    await createTable(knex, engine, "known_devices", (table, key) => {
      key("user_id", ID).notNullable();
      key("token_hash", HASH).notNullable();
      table.string("description", 100).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("last_used_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.integer("failures").notNullable().defaultTo(0);
      table.primary(["user_id", "token_hash"]);
    });

    await createTable(knex, engine, "sign_in_failures", (table, key) => {
      // SHA-256 of the normalized username, of existing and unknown users alike.
      key("account_key", HASH).primary();
      // Wrong passwords from unknown devices since the last successful sign-in from one.
      table.integer("failures").notNullable();
      table.bigInteger("next_attempt_at").notNullable();
      // Null for existing users.
      table.bigInteger("expires_at").index();
    });

    await createTable(knex, engine, "totp_secrets", (table, key) => {
      key("user_id", ID).primary();
      table.string("secret", 255).notNullable(); // encrypted
      table.bigInteger("created_at").notNullable();
      table.bigInteger("confirmed_at"); // null until the user has entered a code
      table.bigInteger("last_step"); // the newest time step whose code was accepted
      table.bigInteger("last_used_at");
    });

    await createTable(knex, engine, "recovery_codes", (table, key) => {
      key("code_hash", HASH).primary();
      key("user_id", ID).notNullable().index();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("used_at");
    });

    await createTable(knex, engine, "passkeys", (table, key) => {
      key("id", ID).primary();
      key("user_id", ID).notNullable().index();
      // A credential ID has up to 1,023 bytes (WebAuthn §4), too many for an index.
      key("credential_hash", HASH).notNullable().unique();
      table.text("credential_id").notNullable();
      table.text("public_key").notNullable();
      table.bigInteger("counter").notNullable();
      table.string("transports", 255).notNullable();
      table.boolean("synced").notNullable();
      table.string("name", 100).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("last_used_at");
    });

    await createTable(knex, engine, "notices", (table, key) => {
      key("id", ID).primary();
      key("user_id", ID).notNullable();
      table.string("kind", KIND).notNullable();
      table.text("data").notNullable(); // JSON without secrets
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("dismissed_at");
      table.index(["user_id", "kind"]);
    });

    await createTable(knex, engine, "mails", (table, key) => {
      key("id", ID).primary();
      key("user_id", ID).index(); // whom it is for or from; null until it is known
      table.string("recipient", EMAIL).index(); // null until it is known
      table.string("kind", KIND).notNullable();
      table.text("data").notNullable(); // JSON without secrets
      table.text("secret"); // an encrypted token
      table.integer("attempts").notNullable().defaultTo(0);
      table.bigInteger("due_at").index(); // null once sent
      table.string("leased_by", ID);
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
    });
  },
};
