import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { service } from "./0001_service.ts";
import { accounts } from "./0002_accounts.ts";
import { organizations } from "./0003_organizations.ts";
import { oauth } from "./0004_oauth.ts";
import { links } from "./0005_links.ts";
import { events } from "./0006_events.ts";
import { webhooks } from "./0007_webhooks.ts";
import { recordCompatibility } from "./compatibility.ts";
import type { Migration } from "./migration.ts";

/** All migrations, in order. */
export const MIGRATIONS: Migration[] = [service, accounts, organizations, oauth, links, events, webhooks];

/** Returns migrations as a Knex source. Listing them saves a file search, which would not find TypeScript. */
export function migrations(engine: Engine, all = MIGRATIONS): Knex.MigrationSource<Migration> {
  return {
    getMigrations: async () => all,
    getMigrationName: (migration) => migration.name,
    getMigration: async (migration) => ({
      async up(knex) {
        await migration.up(knex, engine);
        // Before Knex records the migration: if the process dies in between, both are repeated.
        await recordCompatibility(knex, migration);
      },
      // On PostgreSQL, a transaction that changes several tables deadlocks with transactions of the previous version.
      config: { transaction: engine !== "postgres" },
      down: () => Promise.reject(new Error("migrations cannot be rolled back: restore a backup")),
    }),
  };
}
