import type { Knex } from "knex";
import { createOnce } from "./create-table.ts";
import type { LaterMigration } from "./migration.ts";

const TRACEPARENT = 55; // version, trace ID, parent ID and flags

/** Adds the trace of the request that caused an event. Null without one, so earlier versions may omit the column. */
export const eventTraces: LaterMigration = {
  name: "0035_event_traces",
  oldestCompatible: "0033_schema_compatibility",
  // PostgreSQL and MariaDB commit each schema change, so every step checks whether a process that died here already made it.
  async up(knex, engine) {
    if (!(await knex.schema.hasColumn("events", "traceparent"))) {
      // With an index on a generated column, MariaDB copies the table to add a column, and blocks writes meanwhile.
      if (engine === "mysql") await dropIndex(knex);
      await knex.schema.alterTable("events", (table) => {
        table.string("traceparent", TRACEPARENT);
      });
    }
    if (engine === "mysql") await createOnce(knex, "create index events_unchained on events (unchained)");
  },
};

async function dropIndex(knex: Knex): Promise<void> {
  try {
    await knex.raw("drop index events_unchained on events");
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ER_CANT_DROP_FIELD_OR_KEY") throw error;
  }
}
