import type { Link, LinkConflict, LinkStore } from "../../resources/links/types.ts";
import { newId } from "../crypto/ids.ts";
import { isDuplicate, isMissingValue, violatedConstraint } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { deliveriesOf, EVENT_COLUMNS, eventRow, type Outbox } from "../events/outbox.ts";
import { linkCreated } from "./events.ts";
import { ROW_COLUMNS, storedBytes, toRow } from "./row.ts";
import { exceededQuota, type LimitsOf, usageCounter } from "./usage.ts";

/** Prepares the creation of links. Links of concurrent requests are stored together. */
export function prepareCreate(
  { engine, inserter, knex }: Database,
  outbox: Outbox,
  limitsOf: LimitsOf,
): LinkStore["create"] {
  const insert = inserter({
    tables: [
      { name: "links", columns: ROW_COLUMNS },
      { name: "events", columns: [...EVENT_COLUMNS, ...outbox.trace.columns] },
    ],
    uniqueColumn: "slug",
    counter: usageCounter(limitsOf),
    follow: (rows) => deliveriesOf(engine, rows),
  });

  return async (organizationId, actor, fields, givenId) => {
    const now = Date.now();
    const link: Link = {
      ...fields,
      id: givenId ?? newId("lnk"),
      organizationId,
      clicks: 0,
      lastClickedAt: null,
      version: 1,
      createdBy: actor.id,
      createdVia: actor.via ?? null,
      createdAt: now,
      updatedAt: now,
      disabledAt: null,
      disabledReason: null,
    };
    const row = toRow(link);
    const event = eventRow(actor, linkCreated(link), outbox.trace.of("link.created"));
    const usage = { links: 1, link_bytes: storedBytes(row) };
    try {
      await insert(row, event, { organization_id: organizationId, ...usage });
    } catch (error) {
      if (isMissingValue(error)) throw await exceededQuota(knex, organizationId, usage, limitsOf);
      return toConflict(error);
    }
    outbox.notify();
    return link;
  };
}

/** Returns the unique field that a duplicate link conflicts in. */
export function toConflict(error: unknown): LinkConflict {
  if (!isDuplicate(error)) throw error;
  return { taken: violatedConstraint(error).includes("external_id") ? "external_id" : "slug" };
}
