import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url
const CLIENT_ID = 255; // may be the URL of a client metadata document

/** Creates organizations, users, clients, oidc-provider's storage and links. */
export const initial: Migration = {
  name: "0001_initial",
  async up(knex, engine) {
    await createTenants(knex, engine);
    await createClients(knex, engine);
    await createProtocolTables(knex, engine);
    await createLinks(knex, engine);
  },
};

async function createTenants(knex: Knex, engine: Engine) {
  await knex.schema.createTable("organizations", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    table.string("name", 100).notNullable();
    table.string("plan", 16).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
  });
  await knex.schema.createTable("users", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    table.string("username", 64).notNullable();
    // The normalized username: "Ada" and "ada" are the same user.
    keyColumn(table, "username_key", 64, engine).notNullable().unique();
    table.string("password_hash", 255);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("disabled_at");
  });
  await knex.schema.createTable("memberships", (table) => {
    keyColumn(table, "user_id", ID, engine).notNullable().references("users.id").onDelete("CASCADE");
    keyColumn(table, "organization_id", ID, engine)
      .notNullable()
      .references("organizations.id")
      .onDelete("CASCADE");
    table.string("role", 16).notNullable();
    table.bigInteger("created_at").notNullable();
    table.primary(["user_id", "organization_id"]);
    table.index("organization_id");
  });
  await knex.schema.createTable("one_time_links", (table) => {
    keyColumn(table, "id_hash", HASH, engine).primary();
    table.string("purpose", 32).notNullable();
    keyColumn(table, "user_id", ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("used_at");
  });
}

async function createClients(knex: Knex, engine: Engine) {
  await knex.schema.createTable("clients", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    // At most one client per organization, also under concurrent upgrades.
    keyColumn(table, "organization_id", ID, engine).notNullable().unique().references("organizations.id");
    table.text("redirect_uris").notNullable();
    // A denormalized copy of what authentication reads; written with each change.
    table.text("document").notNullable();
    // Incremented to revoke all tokens of the client together.
    table.integer("generation").notNullable().defaultTo(0);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
  });
  await knex.schema.createTable("client_secrets", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "client_id", ID, engine)
      .notNullable()
      .index()
      .references("clients.id")
      .onDelete("CASCADE");
    keyColumn(table, "hash", HASH, engine).notNullable();
    keyColumn(table, "last4", 4, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at");
    table.bigInteger("last_used_at");
  });
  await knex.schema.createTable("leases", (table) => {
    // Jobs that one process at a time runs on behalf of all.
    keyColumn(table, "name", 32, engine).primary();
    keyColumn(table, "holder", ID, engine).notNullable();
    table.bigInteger("expires_at").notNullable();
  });
  await knex.schema.createTable("sealed_keys", (table) => {
    keyColumn(table, "purpose", 32, engine).primary();
    table.text("sealed").notNullable();
    table.bigInteger("created_at").notNullable();
  });
}

async function createProtocolTables(knex: Knex, engine: Engine) {
  await knex.schema.createTable("grants", (table) => {
    keyColumn(table, "id", HASH, engine).primary();
    keyColumn(table, "client_id", CLIENT_ID, engine).notNullable().index();
    keyColumn(table, "user_id", ID, engine).notNullable().index();
    keyColumn(table, "organization_id", ID, engine).index();
    table.text("payload").notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("revoked_at");
  });
  await knex.schema.createTable("tokens", (table) => {
    // SQLite keeps the rowid although the hash is the primary key: a random key causes no page splits of the rows.
    keyColumn(table, "id_hash", HASH, engine).primary();
    table.string("kind", 32).notNullable();
    keyColumn(table, "client_id", CLIENT_ID, engine);
    keyColumn(table, "grant_id", HASH, engine);
    table.integer("generation");
    table.text("payload").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("consumed_at");
  });
  await knex.schema.createTable("sessions", (table) => {
    keyColumn(table, "id_hash", HASH, engine).primary();
    keyColumn(table, "uid", HASH, engine).unique();
    keyColumn(table, "user_id", ID, engine).index();
    table.text("payload").notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("destroyed_at");
  });
  await knex.schema.createTable("interactions", (table) => {
    keyColumn(table, "id_hash", HASH, engine).primary();
    table.text("payload").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("destroyed_at");
  });
}

async function createLinks(knex: Knex, engine: Engine) {
  await knex.schema.createTable("links", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    keyColumn(table, "slug", 64, engine).notNullable().unique();
    table.text("url").notNullable();
    table.string("title", 255);
    const tags = table.text("tags").notNullable();
    if (engine === "mysql") tags.collate("utf8mb4_bin"); // compares tags byte by byte
    keyColumn(table, "external_id", 255, engine);
    table.text("metadata").notNullable();
    table.boolean("archived").notNullable().defaultTo(false);
    table.bigInteger("expires_at");
    table.integer("max_clicks");
    table.integer("redirect_type").notNullable();
    table.bigInteger("clicks").notNullable().defaultTo(0);
    table.bigInteger("last_clicked_at");
    // Incremented by each change except clicks. Used as the entity tag.
    table.integer("version").notNullable().defaultTo(1);
    keyColumn(table, "created_by", CLIENT_ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
    // A deleted link keeps its row so its slug is never reused.
    table.bigInteger("deleted_at");
    table.index(["organization_id", "id"]);
    table.unique(["organization_id", "external_id"]);
  });
}
