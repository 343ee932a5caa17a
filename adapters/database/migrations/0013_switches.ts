import type { Knex } from "knex";
import { type Engine, keyColumn } from "../engine.ts";
import type { Migration } from "./migration.ts";

const ACTOR_ID = 255; // may be the id of a client
const REASON = 255;

/** Adds what records that an organization was suspended, or that a user, a client or a link was disabled. */
export const switches: Migration = {
  name: "0013_switches",
  async up(knex, engine) {
    await addSuspension(knex);
    await addReason(knex);
    await addClientSwitch(knex, engine);
    await addLinkSwitch(knex);
  },
};

// PostgreSQL and MariaDB commit each schema change, so a process that died here may already have made some of them.

async function addSuspension(knex: Knex) {
  if (await knex.schema.hasColumn("organizations", "suspended_at")) return;
  await knex.schema.alterTable("organizations", (table) => {
    table.bigInteger("suspended_at");
    table.string("suspended_reason", REASON);
  });
}

async function addReason(knex: Knex) {
  if (await knex.schema.hasColumn("users", "disabled_reason")) return;
  await knex.schema.alterTable("users", (table) => {
    table.string("disabled_reason", REASON);
  });
}

async function addClientSwitch(knex: Knex, engine: Engine) {
  if (await knex.schema.hasColumn("clients", "disabled_at")) return;
  await knex.schema.alterTable("clients", (table) => {
    table.bigInteger("disabled_at");
    // A user id or `operator`. What the operator disabled, only the operator enables.
    keyColumn(table, "disabled_by", ACTOR_ID, engine);
    table.string("disabled_reason", REASON);
  });
}

async function addLinkSwitch(knex: Knex) {
  if (await knex.schema.hasColumn("links", "disabled_at")) return;
  await knex.schema.alterTable("links", (table) => {
    table.bigInteger("disabled_at");
    table.string("disabled_reason", REASON);
  });
}
