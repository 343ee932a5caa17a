import { hash } from "node:crypto";
import type { Knex } from "knex";
import type { EventType } from "../../../resources/events/types.ts";
import { type Engine, keyColumn } from "../engine.ts";
import { createOnce, createTable } from "./create-table.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url
const HOST = 253; // a hostname
const BATCH = 200;

/** Adds what fair scheduling and daily quotas need, and makes URLs unique. */
export const fairDeliveries: Migration = {
  name: "0017_fair_deliveries",
  async up(knex, engine) {
    await extendWebhooks(knex, engine);
    await describeWebhooks(knex);
    await makeUrlsUnique(knex);
    await indexPendingDeliveries(knex, engine);
    await createUsage(knex, engine);
    await redactUrls(knex);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function extendWebhooks(knex: Knex, engine: Engine) {
  if (await knex.schema.hasColumn("webhooks", "host")) return;
  await knex.schema.alterTable("webhooks", (table) => {
    // From here on, `url` is encrypted. The host is what schedules deliveries and what the audit log shows.
    keyColumn(table, "host", HOST, engine);
    // SHA-256 of the organization and the URL. Where an organization already has a URL twice, of the webhook as well.
    keyColumn(table, "url_hash", HASH, engine);
    // Since when responses take too long; null after a fast one.
    table.bigInteger("slow_since");
    // Until when no request is sent after repeated failures.
    table.bigInteger("blocked_until");
    // The number of failed attempts since the last success.
    table.integer("failures").notNullable().defaultTo(0);
  });
}

/** Fills the new columns. */
async function describeWebhooks(knex: Knex) {
  for (;;) {
    const rows = await knex("webhooks").whereNull("url_hash").orderBy("id").limit(BATCH);
    if (rows.length === 0) return;
    for (const { id, organization_id, url } of rows) {
      const href = URL.parse(url)?.href ?? url;
      const url_hash = hash("sha256", `${organization_id} ${href}`, "base64url");
      const first = await knex("webhooks").where({ organization_id, url_hash }).first();
      await knex("webhooks")
        .where({ id })
        .update({
          host: URL.parse(url)?.hostname ?? "",
          url_hash: first ? hash("sha256", `${organization_id} ${href} ${id}`, "base64url") : url_hash,
        });
    }
  }
}

const UNIQUE_URL = "webhooks_organization_id_url_hash_unique";

async function makeUrlsUnique(knex: Knex) {
  const addIndex = knex.schema.alterTable("webhooks", (table) => {
    table.unique(["organization_id", "url_hash"], { indexName: UNIQUE_URL });
  });
  for (const { sql } of addIndex.toSQL()) await createOnce(knex, sql);
}

const PENDING = "deliveries_pending";

async function indexPendingDeliveries(knex: Knex, engine: Engine) {
  if (engine !== "mysql") {
    await knex.raw(
      `create index if not exists ${PENDING} on deliveries (webhook_id, due_at) where due_at is not null`,
    );
    return;
  }
  if (await knex.schema.hasColumn("deliveries", "pending_webhook_id")) return;
  // An index can't be partial. One statement, so that the column never exists without its index.
  await knex.raw(
    `alter table deliveries
    add column pending_webhook_id varchar(${ID}) character set utf8mb4 collate /*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */
      generated always as (if(due_at is null, null, webhook_id)) virtual invisible,
    add index ${PENDING} (pending_webhook_id, due_at)`,
  );
}

async function createUsage(knex: Knex, engine: Engine) {
  await createTable(knex, "delivery_usage", (table) => {
    // The deliveries of an organization on its last day with any (UTC, days since January 1, 1970).
    keyColumn(table, "organization_id", ID, engine).primary();
    table.integer("day").notNullable();
    table.bigInteger("deliveries").notNullable();
    // The last day on which the quota was reached.
    table.integer("quota_reached_on");
  });
}

const TYPES = "created updated deleted secret_rotated secret_viewed disabled"
  .split(" ")
  .map((name) => `webhook.${name}` as EventType);

/** Removes paths and queries, which may be secrets, from URLs in the audit log. */
async function redactUrls(knex: Knex) {
  let after = "";
  for (;;) {
    const rows = await knex("events")
      .where("id", ">", after)
      .whereIn("type", TYPES)
      .orderBy("id")
      .limit(BATCH);
    if (rows.length === 0) return;
    for (const { id, data } of rows) {
      const details = JSON.parse(data);
      const url = typeof details.url === "string" ? URL.parse(details.url) : null;
      if (!url || details.url.endsWith("/…")) continue;
      const shown = url.pathname === "/" && !url.search ? details.url : `${url.origin}/…`;
      await knex("events")
        .where({ id })
        .update({ data: JSON.stringify({ ...details, url: shown }) });
    }
    after = rows.at(-1)?.id ?? "";
  }
}
