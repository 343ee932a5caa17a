import { createTable, HASH, ID, type Migration } from "./migration.ts";

const MIGRATION = 255; // Knex's length of a migration's name

export const service: Migration = {
  name: "0001_service",
  changes: "Creates the tables of the service: schema versions, leases, keys and idempotency keys.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "schema_compatibility", (table, key) => {
      key("migration", MIGRATION).primary();
      key("oldest_compatible", MIGRATION);
      table.string("version", 64).notNullable();
    });

    await createTable(knex, engine, "leases", (table, key) => {
      key("name", 32).primary();
      key("holder", ID).notNullable();
      table.bigInteger("expires_at").notNullable();
    });

    await createTable(knex, engine, "sealed_keys", (table, key) => {
      key("purpose", 32).primary();
      table.text("sealed").notNullable(); // encrypted
      table.bigInteger("created_at").notNullable();
      table.integer("version").notNullable().defaultTo(1);
    });

    await createTable(knex, engine, "idempotency_keys", (table, key) => {
      key("organization_id", ID).notNullable();
      key("key_hash", HASH).notNullable();
      key("request_hash", HASH).notNullable();
      // The response to replay, encrypted. Null until there is one.
      table.text("answer", "mediumtext");
      // The current or last attempt. After `leased_until` it is presumed dead.
      key("leased_by", ID).notNullable();
      table.bigInteger("leased_until").notNullable();
      // The seed of the ids of links that the request creates: the same in each attempt.
      key("ids_from", ID).notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.primary(["organization_id", "key_hash"]);
    });
  },
};
