import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { initial } from "./0001_initial.ts";
import { peopleAndEvents } from "./0002_people_and_events.ts";
import { dropClientDocument } from "./0003_drop_client_document.ts";
import { resetLinkCreator } from "./0004_reset_link_creator.ts";
import type { Migration } from "./migration.ts";

/** Every step, in order. */
export const steps: Migration[] = [initial, peopleAndEvents, dropClientDocument, resetLinkCreator];

/** The steps in order, as Knex wants them; listed here because they are TypeScript and need no file search. */
export function migrations(engine: Engine): Knex.MigrationSource<Migration> {
  return {
    getMigrations: async () => steps,
    getMigrationName: (step) => step.name,
    getMigration: async (step) => ({
      up: (knex) => step.up(knex, engine),
      down: () => Promise.reject(new Error("there is no way back: restore a backup")),
    }),
  };
}
