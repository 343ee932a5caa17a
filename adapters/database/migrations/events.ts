import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { createOnce } from "./migration.ts";

export async function finishEvents(knex: Knex, engine: Engine): Promise<void> {
  const isPartial = engine !== "mysql";
  if (!isPartial && !(await knex.schema.hasColumn("events", "unchained"))) {
    // Takes the place of a partial index.
    await knex.raw(
      "alter table events add column unchained tinyint as (case when audited and seq is null then 1 end) virtual",
    );
  }
  await createOnce(
    knex,
    `create unique index events_chain on events (organization_id, seq)${isPartial ? " where seq is not null" : ""}`,
  );
  await createOnce(
    knex,
    `create index events_unchained on events ${isPartial ? "(id) where audited = true and seq is null" : "(unchained)"}`,
  );
}
