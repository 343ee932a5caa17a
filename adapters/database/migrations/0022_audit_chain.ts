import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import { createOnce, createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 64; // SHA-256 in hexadecimal

/** Chains the entries of each audit log by hash. Existing entries are chained in the background after the migration. */
export const auditChain: Migration = {
  name: "0022_audit_chain",
  // PostgreSQL and MariaDB commit each schema change, so every step checks whether a process that died here already made it.
  async up(knex, engine) {
    await extendEvents(knex, engine);
    await indexEvents(knex, engine);
    await createChains(knex, engine);
  },
};

async function extendEvents(knex: Knex, engine: Engine) {
  if (await knex.schema.hasColumn("events", "seq")) return;
  await knex.schema.alterTable("events", (table) => {
    // The position in the organization's audit log, from 1. Null until the entry is chained, and in events that aren't audited.
    table.bigInteger("seq");
    keyColumn(table, "hash", HASH, engine);
  });
}

async function indexEvents(knex: Knex, engine: Engine) {
  if (engine !== "mysql") {
    await createOnce(
      knex,
      "create unique index events_chain on events (organization_id, seq) where seq is not null",
    );
    await createOnce(
      knex,
      "create index events_unchained on events (id) where audited = true and seq is null",
    );
    return;
  }
  if (!(await knex.schema.hasColumn("events", "unchained"))) {
    // Takes the place of a partial index, which MySQL and MariaDB don't have.
    await knex.raw(
      "alter table events add column unchained tinyint as (case when audited and seq is null then 1 end) virtual",
    );
  }
  await createOnce(knex, "create unique index events_chain on events (organization_id, seq)");
  await createOnce(knex, "create index events_unchained on events (unchained)");
}

async function createChains(knex: Knex, engine: Engine) {
  await createTable(knex, "audit_chains", (table) => {
    // One row per audit log. Its lock orders the processes that append to the chain or delete from it.
    keyColumn(table, "organization_id", ID, engine).primary();
    // The last entry.
    table.bigInteger("seq").notNullable();
    keyColumn(table, "hash", HASH, engine).notNullable();
    table.bigInteger("expires_at").notNullable();
    // The last entry that was deleted because it had expired: where verification starts.
    table.bigInteger("purged_seq").notNullable();
    keyColumn(table, "purged_hash", HASH, engine).notNullable();
  });
}
