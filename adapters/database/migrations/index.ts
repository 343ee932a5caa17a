import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { initial } from "./0001_initial.ts";
import { peopleAndEvents } from "./0002_people_and_events.ts";
import { dropClientDocument } from "./0003_drop_client_document.ts";
import { resetLinkCreator } from "./0004_reset_link_creator.ts";
import { clientIdentities } from "./0005_client_identities.ts";
import { rememberedConsent } from "./0012_remembered_consent.ts";
import type { Migration } from "./migration.ts";

/** All migrations, in order. */
export const MIGRATIONS: Migration[] = [
  initial,
  peopleAndEvents,
  dropClientDocument,
  resetLinkCreator,
  clientIdentities,
  rememberedConsent,
];

/** Returns the migrations as a Knex source. Listing them saves a file search, which would not find TypeScript. */
export function migrations(engine: Engine): Knex.MigrationSource<Migration> {
  return {
    getMigrations: async () => MIGRATIONS,
    getMigrationName: (migration) => migration.name,
    getMigration: async (migration) => ({
      up: (knex) => migration.up(knex, engine),
      down: () => Promise.reject(new Error("migrations cannot be rolled back: restore a backup")),
    }),
  };
}
