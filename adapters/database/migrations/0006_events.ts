import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { ADDRESS, CLIENT_ID, createOnce, createTable, ID, type Migration } from "./migration.ts";

const HASH = 64; // SHA-256 or HMAC-SHA-256 in hexadecimal
const SUM = 512; // 2048 bits in hexadecimal
const TRACEPARENT = 55; // version, trace ID, parent ID and flags

export const events: Migration = {
  name: "0006_events",
  changes: "Creates the tables of events and audit logs.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "events", (table, key) => {
      key("id", ID).primary();
      key("organization_id", ID).notNullable();
      // False for clicks and tests, which are not shown in the audit log.
      table.boolean("audited").notNullable();
      key("type", 40).notNullable();
      key("actor", CLIENT_ID).notNullable();
      key("via", CLIENT_ID);
      key("address", ADDRESS);
      key("subject", CLIENT_ID);
      table.text("data", "mediumtext").notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      // The position in the audit log, from 1. Null until the entry is chained, and in events that aren't audited.
      table.bigInteger("seq");
      key("hash", HASH);
      table.string("traceparent", TRACEPARENT);
      table.index(["organization_id", "audited", "id"]);
    });

    await indexChains(knex, engine);
    await createTable(knex, engine, "audit_chains", (table, key) => {
      // One row per audit log. Its lock orders the processes that append to the chain or delete from it.
      key("organization_id", ID).primary();
      table.bigInteger("seq").notNullable();
      key("hash", HASH).notNullable();
      table.bigInteger("expires_at").notNullable();
      table.bigInteger("purged_seq").notNullable();
      key("purged_hash", HASH).notNullable();
      // The code of this head and, in the row of all logs, the sum that authenticates all heads together.
      key("mac", HASH);
      key("sum", SUM);
    });
  },
};

async function indexChains(knex: Knex, engine: Engine) {
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
    // Takes the place of a partial index.
    await knex.raw(
      "alter table events add column unchained tinyint as (case when audited and seq is null then 1 end) virtual",
    );
  }
  await createOnce(knex, "create unique index events_chain on events (organization_id, seq)");
  await createOnce(knex, "create index events_unchained on events (unchained)");
}
