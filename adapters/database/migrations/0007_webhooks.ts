import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import {
  BYTE_BY_BYTE,
  CLIENT_ID,
  createOnce,
  createTable,
  HASH,
  HOST,
  ID,
  type Migration,
} from "./migration.ts";

export const webhooks: Migration = {
  name: "0007_webhooks",
  changes: "Creates the tables of webhooks and their deliveries.",
  rewrites: () => [],
  oldestCompatible: null,
  async up(knex, engine) {
    await createTable(knex, engine, "webhooks", (table, key) => {
      key("id", ID).primary();
      key("organization_id", ID).notNullable().index();
      table.text("url").notNullable(); // encrypted
      // Schedules deliveries and is shown in the audit log.
      key("host", HOST);
      key("url_hash", HASH);
      key("events", 255).notNullable();
      table.boolean("enabled").notNullable();
      table.text("secret").notNullable(); // encrypted
      table.text("previous_secret"); // encrypted; signs as well until `previous_until`
      table.bigInteger("previous_until");
      table.bigInteger("failing_since");
      table.bigInteger("paused_until"); // requested by the receiver (Retry-After)
      table.bigInteger("slow_since");
      table.bigInteger("blocked_until");
      table.integer("failures").notNullable().defaultTo(0);
      table.string("disabled_reason", 255);
      key("created_by", CLIENT_ID);
      key("created_via", CLIENT_ID);
      key("verification_event_id", ID);
      table.bigInteger("verification_expires_at");
      table.bigInteger("created_at").notNullable();
      table.bigInteger("updated_at").notNullable();
      table.unique(["organization_id", "url_hash"]);
    });

    await createTable(knex, engine, "deliveries", (table, key) => {
      // One for each event and subscribed webhook, created with the event.
      key("webhook_id", ID).notNullable();
      key("event_id", ID).notNullable();
      table.string("status", 16).notNullable(); // pending, succeeded, failed
      table.integer("attempts").notNullable().defaultTo(0);
      // When the next attempt is due, or null if there is none. A lease postpones it.
      table.bigInteger("due_at");
      key("leased_by", ID);
      // Past attempts as JSON: time, duration, status or error.
      table.text("log").notNullable();
      table.bigInteger("created_at").notNullable();
      table.bigInteger("expires_at").notNullable().index();
      table.primary(["webhook_id", "event_id"]);
      table.index(["due_at", "webhook_id"]);
    });

    await indexPendingDeliveries(knex, engine);
    await createTable(knex, engine, "delivery_usage", (table, key) => {
      key("organization_id", ID).primary();
      table.integer("day").notNullable(); // days since January 1, 1970, UTC
      table.bigInteger("deliveries").notNullable();
      table.integer("quota_reached_on");
    });
  },
};

const PENDING = "deliveries_pending";

async function indexPendingDeliveries(knex: Knex, engine: Engine) {
  if (engine !== "mysql") {
    await createOnce(
      knex,
      `create index ${PENDING} on deliveries (webhook_id, due_at) where due_at is not null`,
    );
    return;
  }
  if (await knex.schema.hasColumn("deliveries", "pending_webhook_id")) return;
  // An index can't be partial. One statement, so that the column never exists without its index.
  await knex.raw(
    `alter table deliveries
    add column pending_webhook_id varchar(${ID}) ${BYTE_BY_BYTE}
      generated always as (if(due_at is null, null, webhook_id)) virtual invisible,
    add index ${PENDING} (pending_webhook_id, due_at)`,
  );
}
