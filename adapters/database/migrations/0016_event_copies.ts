import { BYTE_BY_BYTE, ID, type Migration } from "./migration.ts";

export const eventCopies: Migration = {
  name: "0016_event_copies",
  changes: "Adds references from entries of the audit log to the events with all of their data.",
  // MariaDB rebuilds a table that has an index on a virtual column.
  rewrites: (engine) => (engine === "mysql" ? ["events"] : []),
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    if (await knex.schema.hasColumn("events", "copy_id")) return;
    await knex.schema.alterTable("events", (table) => {
      const type = engine === "mysql" ? `varchar(${ID}) ${BYTE_BY_BYTE}` : `varchar(${ID})`;
      table.specificType("copy_id", type);
    });
  },
};
