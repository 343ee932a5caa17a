import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { BYTE_BY_BYTE, createOnce, type Migration } from "./migration.ts";

const TYPE = 40; // as in `events`

export const deliveryLog: Migration = {
  name: "0011_delivery_log",
  changes:
    "Adds the event type and the last request and response to webhook deliveries, and the last success to webhooks.",
  rewrites: () => ["deliveries"],
  oldestCompatible: "0007_webhooks",
  async up(knex, engine) {
    await addToDeliveries(knex, engine);
    // Also reads those that an earlier version adds meanwhile, because their type is empty.
    await createOnce(knex, "create index deliveries_log on deliveries (webhook_id, type, status, event_id)");
    if (await knex.schema.hasColumn("webhooks", "last_success_at")) return;
    await knex.schema.alterTable("webhooks", (table) => {
      table.bigInteger("last_success_at");
    });
  },
};

async function addToDeliveries(knex: Knex, engine: Engine) {
  if (!(await knex.schema.hasColumn("deliveries", "type"))) {
    await knex.schema.alterTable("deliveries", (table) => {
      const type = engine === "mysql" ? `varchar(${TYPE}) ${BYTE_BY_BYTE}` : `varchar(${TYPE})`;
      // That of the event, by which deliveries are filtered. Empty if an earlier version added the delivery.
      table.specificType("type", type).notNullable().defaultTo("");
      table.text("exchange"); // encrypted: the last request and its response
    });
  }
  await knex.raw(
    `update deliveries set type = coalesce((select e.type from events e where e.id = deliveries.event_id), '')
    where type = ''`,
  );
}
