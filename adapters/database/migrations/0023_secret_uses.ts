import { isDuplicateIndex, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID

/** Adds who used each client secret, and finds a secret by its hash without its client. */
export const secretUses: Migration = {
  name: "0023_secret_uses",
  async up(knex, engine) {
    // MariaDB commits each schema change, so a process that died here may already have made some of them.
    try {
      await knex.raw("create index client_secrets_hash_index on client_secrets (hash)");
    } catch (error) {
      if (!isDuplicateIndex(error)) throw error;
    }
    if (await knex.schema.hasTable("client_secret_uses")) return;
    await knex.schema.createTable("client_secret_uses", (table) => {
      keyColumn(table, "secret_id", ID, engine).notNullable();
      table.string("program", 40).notNullable();
      table.string("network", 64).notNullable();
      table.bigInteger("last_used_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.primary(["secret_id", "program", "network"]);
    });
  },
};
