import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ID = 40; // a prefix and a ULID
const HASH = 43; // SHA-256 in base64url
const CLIENT_ID = 255; // a client may be named by the address of its metadata document
const ADDRESS = 45; // an IPv6 address in its longest form

/** People from elsewhere, invitations, what happened, webhooks, click statistics, and answers to repeat. */
export const peopleAndEvents: Migration = {
  name: "0002_people_and_events",
  async up(knex, engine) {
    await extendTables(knex, engine);
    await createPeople(knex, engine);
    await createEvents(knex, engine);
    await createStatistics(knex, engine);
    await createIdempotency(knex, engine);
  },
};

async function extendTables(knex: Knex, engine: Engine) {
  await knex.schema.alterTable("organizations", (table) => {
    // A deleted organization keeps its row: the addresses of its links are never given out again.
    table.bigInteger("deleted_at");
  });
  await knex.schema.alterTable("grants", (table) => {
    table.bigInteger("last_used_at");
  });
  await knex.schema.alterTable("interactions", (table) => {
    // Who has signed in, and may go on with that.
    keyColumn(table, "user_id", ID, engine).index();
  });
  await knex.schema.alterTable("sessions", (table) => {
    table.bigInteger("last_seen_at");
    keyColumn(table, "address", ADDRESS, engine);
    table.string("user_agent", 255);
  });
  // Elsewhere a text has no end; here it has 64 KB, and what is allowed as metadata may take more.
  if (engine === "mysql") {
    await knex.schema.alterTable("links", (table) => {
      table.text("metadata", "mediumtext").notNullable().alter();
    });
  }
}

async function createPeople(knex: Knex, engine: Engine) {
  await knex.schema.createTable("identities", (table) => {
    // A person at an identity provider: nothing else about him or her is unique, or stays (OIDC Core §5.7).
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
    // Written in the transaction of what they tell. The audit log shows them, webhooks are told of them.
    keyColumn(table, "id", ID, engine).primary();
    keyColumn(table, "organization_id", ID, engine).notNullable();
    // Clicks are events, but no entries of the audit log.
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
    // The names of the events, one after the other.
    keyColumn(table, "events", 255, engine).notNullable();
    table.boolean("enabled").notNullable();
    table.text("secret").notNullable(); // encrypted
    table.text("previous_secret"); // encrypted; signs as well until `previous_until`
    table.bigInteger("previous_until");
    table.bigInteger("failing_since");
    table.bigInteger("paused_until"); // the receiver asked for it
    table.string("disabled_reason", 255);
    table.bigInteger("created_at").notNullable();
    table.bigInteger("updated_at").notNullable();
  });
  await knex.schema.createTable("deliveries", (table) => {
    // One for each event and webhook, made with the event.
    keyColumn(table, "webhook_id", ID, engine).notNullable();
    keyColumn(table, "event_id", ID, engine).notNullable();
    table.string("status", 16).notNullable(); // pending, succeeded, failed
    table.integer("attempts").notNullable().defaultTo(0);
    // When the next attempt is due; nothing when there is none. A lease puts it off.
    table.bigInteger("due_at");
    keyColumn(table, "leased_by", ID, engine);
    // The attempts so far, as JSON: when, how long, status or reason.
    table.text("log").notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.primary(["webhook_id", "event_id"]);
    table.index(["due_at", "webhook_id"]);
  });
}

async function createStatistics(knex: Knex, engine: Engine) {
  await knex.schema.createTable("click_stats", (table) => {
    // Clicks of one day (UTC, days since 1970) that came from one place.
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
    // The answer to repeat, encrypted; nothing until there is one.
    table.text("answer", "mediumtext");
    // The attempt that goes on, or went on last; from `leased_until` on it is taken for dead.
    keyColumn(table, "leased_by", ID, engine).notNullable();
    table.bigInteger("leased_until").notNullable();
    // What the ids of whatever the request makes are counted from: the same in each attempt.
    keyColumn(table, "ids_from", ID, engine).notNullable();
    table.bigInteger("created_at").notNullable();
    table.bigInteger("expires_at").notNullable().index();
    table.primary(["organization_id", "key_hash"]);
  });
}
