import { BYTE_BY_BYTE, ID, type Migration } from "./migration.ts";

export const eventCopies: Migration = {
  name: "0016_event_copies",
  changes: "Refers from entries of the audit log to the events with all of their data.",
  rewrites: [],
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    if (await knex.schema.hasColumn("events", "copy_id")) return;
    await knex.schema.alterTable("events", (table) => {
      const type = engine === "mysql" ? `varchar(${ID}) ${BYTE_BY_BYTE}` : `varchar(${ID})`;
      table.specificType("copy_id", type);
    });
  },
};
