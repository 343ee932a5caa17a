import { BYTE_BY_BYTE, ID, type Migration } from "./migration.ts";

/** Refers from an entry of the audit log to the event with all of its data, from which the list of events takes it. */
export const eventCopies: Migration = {
  name: "0016_event_copies",
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    if (await knex.schema.hasColumn("events", "copy_id")) return;
    await knex.schema.alterTable("events", (table) => {
      const type = engine === "mysql" ? `varchar(${ID}) ${BYTE_BY_BYTE}` : `varchar(${ID})`;
      table.specificType("copy_id", type);
    });
  },
};
