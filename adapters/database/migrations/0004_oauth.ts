import { ADDRESS, CLIENT_ID, createTable, HASH, ID, type Migration } from "./migration.ts";

export const oauth: Migration = {
  name: "0004_oauth",
  changes: "Creates the tables of OAuth: clients, grants, tokens and sessions.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "clients", (table, key) => {
      key("id", ID).primary();
      // At most one client per organization, also under concurrent upgrades.
      key("organization_id", ID).notNullable().unique().references("organizations.id");
      table.text("redirect_uris").notNullable();
      // Incremented to revoke all tokens of the client together.
      table.integer("generation").notNullable().defaultTo(0);
      table.bigInteger("created_at").notNullable();
      table.bigInteger("updated_at").notNullable();
      table.bigInteger("disabled_at");
      // A user id or `operator`. Only the operator enables a client that the operator disabled.
      key("disabled_by", CLIENT_ID);
      table.string("disabled_reason", 255);
    });

    await createTable(knex, engine, "client_secrets", (table, key) => {
      key("id", ID).primary();
      key("client_id", ID).notNullable().index().references("clients.id").onDelete("CASCADE");
      key("hash", HASH).notNullable().index();
      key("last4", 4).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at");
      table.bigInteger("last_used_at");
    });

    await createTable(knex, engine, "client_secret_uses", (table, key) => {
      key("secret_id", ID).notNullable();
      table.string("program", 40).notNullable();
      table.string("network", 64).notNullable();
      table.bigInteger("last_used_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.primary(["secret_id", "program", "network"]);
    });

    await createTable(knex, engine, "client_keys", (table, key) => {
      key("id", ID).primary();
      key("client_id", CLIENT_ID).notNullable();
      // The thumbprint of the key (RFC 7638), which is its `kid` unless the JWK names another one.
      key("thumbprint", HASH).notNullable();
      table.text("jwk").notNullable(); // the public key
      key("created_by", CLIENT_ID).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("last_used_at");
      table.unique(["client_id", "thumbprint"]);
    });

    await createTable(knex, engine, "grants", (table, key) => {
      key("id", HASH).primary();
      key("client_id", CLIENT_ID).notNullable().index();
      key("user_id", ID).notNullable().index();
      key("organization_id", ID).index();
      table.text("payload").notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("revoked_at");
      table.bigInteger("last_used_at");
      key("consent_id", HASH);
      table.bigInteger("consented_at");
    });

    await createTable(knex, engine, "tokens", (table, key) => {
      // SQLite keeps the rowid although the hash is the primary key: a random key causes no page splits of the rows.
      key("id_hash", HASH).primary();
      table.string("kind", 32).notNullable();
      key("client_id", CLIENT_ID);
      key("grant_id", HASH);
      table.integer("generation");
      table.text("payload").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("consumed_at");
      table.smallint("retries").notNullable().defaultTo(0);
    });

    await createTable(knex, engine, "sessions", (table, key) => {
      key("id_hash", HASH).primary();
      key("uid", HASH).unique();
      key("user_id", ID).index();
      table.text("payload").notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("destroyed_at");
      table.bigInteger("last_seen_at");
      key("address", ADDRESS);
      table.string("user_agent", 255);
      key("credential", HASH);
    });

    await createTable(knex, engine, "interactions", (table, key) => {
      key("id_hash", HASH).primary();
      table.text("payload").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.bigInteger("destroyed_at");
      key("user_id", ID).index();
    });
  },
};
