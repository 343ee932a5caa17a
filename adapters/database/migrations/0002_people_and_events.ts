import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url
const CLIENT_ID = 255; // may be the URL of a client metadata document
const ADDRESS = 45; // the longest text form of an IPv6 address

/** Creates SSO identities, invitations, events, webhooks, click statistics and idempotency keys. */
export const peopleAndEvents: Migration = {
  name: "0002_people_and_events",
  async up(knex, engine) {
    await extendTables(knex, engine);
    await createSignUp(knex, engine);
    await createEvents(knex, engine);
    await createStatistics(knex, engine);
    await createIdempotency(knex, engine);
  },
};

async function extendTables(knex: Knex, engine: Engine) {
  await knex.schema.alterTable("organizations", (table) => {
    // A deleted organization keeps its row so the slugs of its links are never reused.
    table.bigInteger("deleted_at");
  });
  await knex.schema.alterTable("grants", (table) => {
    table.bigInteger("last_used_at");
  });
  await knex.schema.alterTable("interactions", (table) => {
    // The user who signed in during this authorization.
    keyColumn(table, "user_id", ID, engine).index();
  });
  await knex.schema.alterTable("sessions", (table) => {
    table.bigInteger("last_seen_at");
    keyColumn(table, "address", ADDRESS, engine);
    table.string("user_agent", 255);
  });
  // MySQL's TEXT holds 64 KB, and the allowed metadata may be longer. The other engines have no limit.
  if (engine === "mysql") {
    await knex.schema.alterTable("links", (table) => {
      table.text("metadata", "mediumtext").notNullable().alter();
    });
  }
}

async function createSignUp(knex: Knex, engine: Engine) {
  await knex.schema.createTable("identities", (table) => {
    // A user at an identity provider. Only issuer and subject are unique and stable (OIDC Core §5.7).
    keyColumn(table, "issuer", 255, engine).notNullable();
    keyColumn(table, "subject", 255, engine).notNullable();
    keyColumn(table, "user_id", ID, engine).notNullable().index();
    table.string("label", 255);
    table.bigInteger("created_at").notNullable();
    table.primary(["issuer", "subject"]);
  });
  await knex.schema.createTable("invitations", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "id_hash", HASH, engine).notNullable().unique();
    keyColumn(table, "organization_id", ID, engine).notNullable().index();
    table.string("role", 16).notNullable();
    keyColumn(table, "created_by", ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.bigInteger("used_at");
  });
}

async function createEvents(knex: Knex, engine: Engine) {
  await knex.schema.createTable("events", (table) => {
    // Domain events, written in the transaction of the change. Shown in the audit log and delivered to webhooks.
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    // False for clicks and tests, which are not shown in the audit log.
    table.boolean("audited").notNullable();
    keyColumn(table, "type", 40, engine).notNullable();
    keyColumn(table, "actor", CLIENT_ID, engine).notNullable();
    keyColumn(table, "via", CLIENT_ID, engine);
    keyColumn(table, "address", ADDRESS, engine);
    keyColumn(table, "subject", CLIENT_ID, engine);
    table.text("data", "mediumtext").notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.index(["organization_id", "audited", "id"]);
  });
  await knex.schema.createTable("webhooks", (table) => {
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable().index();
    table.text("url").notNullable();
    // Event types, separated by spaces.
    keyColumn(table, "events", 255, engine).notNullable();
    table.boolean("enabled").notNullable();
    table.text("secret").notNullable(); // encrypted
    table.text("previous_secret"); // encrypted; also signs until `previous_until`
    table.bigInteger("previous_until");
    table.bigInteger("failing_since");
    table.bigInteger("paused_until"); // requested by the receiver (Retry-After)
    table.string("disabled_reason", 255);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
  });
  await knex.schema.createTable("deliveries", (table) => {
    // One for each event and subscribed webhook, created with the event.
    keyColumn(table, "webhook_id", ID, engine).notNullable();
    keyColumn(table, "event_id", ID, engine).notNullable();
    table.string("status", 16).notNullable(); // pending, succeeded, failed
    table.integer("attempts").notNullable().defaultTo(0);
    // When the next attempt is due, or null if there is none. A lease postpones it.
    table.bigInteger("due_at");
    keyColumn(table, "leased_by", ID, engine);
    // Past attempts as JSON: time, duration, status or error.
    table.text("log").notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.primary(["webhook_id", "event_id"]);
    table.index(["due_at", "webhook_id"]);
  });
}

async function createStatistics(knex: Knex, engine: Engine) {
  await knex.schema.createTable("click_stats", (table) => {
    // Clicks per link, day (UTC, days since January 1, 1970), referrer and country.
    keyColumn(table, "link_id", ID, engine).notNullable();
    table.integer("day").notNullable();
    keyColumn(table, "referrer", 253, engine).notNullable(); // a host name, or empty
    keyColumn(table, "country", 2, engine).notNullable(); // ISO 3166-1 alpha-2, or empty
    table.boolean("bot").notNullable();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    table.bigInteger("clicks").notNullable();
    table.primary(["link_id", "day", "referrer", "country", "bot"]);
    table.index(["organization_id", "day"]);
  });
}

async function createIdempotency(knex: Knex, engine: Engine) {
  await knex.schema.createTable("idempotency_keys", (table) => {
    keyColumn(table, "organization_id", ID, engine).notNullable();
    keyColumn(table, "key_hash", HASH, engine).notNullable();
    keyColumn(table, "request_hash", HASH, engine).notNullable();
    // The response to replay, encrypted. Null until there is one.
    table.text("answer", "mediumtext");
    // The current or last attempt. After `leased_until` it is presumed dead.
    keyColumn(table, "leased_by", ID, engine).notNullable();
    table.bigInteger("leased_until").notNullable();
    // The seed of the ids of links that the request creates: the same in each attempt.
    keyColumn(table, "ids_from", ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.primary(["organization_id", "key_hash"]);
  });
}
