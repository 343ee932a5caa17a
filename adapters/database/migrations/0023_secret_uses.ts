import { keyColumn } from "../engine.ts";
import { createOnce, createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID

/** Adds who used each client secret, and finds a secret by its hash without its client. */
export const secretUses: Migration = {
  name: "0023_secret_uses",
  async up(knex, engine) {
    await createOnce(knex, "create index client_secrets_hash_index on client_secrets (hash)");
    await createTable(knex, "client_secret_uses", (table) => {
      keyColumn(table, "secret_id", ID, engine).notNullable();
      table.string("program", 40).notNullable();
      table.string("network", 64).notNullable();
      table.bigInteger("last_used_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.primary(["secret_id", "program", "network"]);
    });
  },
};
