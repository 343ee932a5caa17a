import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { BYTE_BY_BYTE, ID } from "../tables/columns.ts";
import { createOnce } from "./migration.ts";

const PENDING = "deliveries_pending";

export async function finishWebhooks(knex: Knex, engine: Engine): Promise<void> {
  await createOnce(knex, "create index deliveries_log on deliveries (webhook_id, type, status, event_id)");
  if (engine !== "mysql") {
    await createOnce(
      knex,
      `create index ${PENDING} on deliveries (webhook_id, due_at) where due_at is not null`,
    );
    return;
  }
  if (await knex.schema.hasColumn("deliveries", "pending_webhook_id")) return;
  // An index can't be partial. One statement, so that the column never exists without its index.
  await knex.raw(
    `alter table deliveries
    add column pending_webhook_id varchar(${ID}) ${BYTE_BY_BYTE}
      generated always as (if(due_at is null, null, webhook_id)) virtual invisible,
    add index ${PENDING} (pending_webhook_id, due_at)`,
  );
}
