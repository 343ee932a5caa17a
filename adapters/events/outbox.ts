import type { Knex } from "knex";
import type { By, EventType } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { type Engine, holdsColumn } from "./engine.ts";
import { newId } from "./id.ts";
import type { Row } from "./inserter.ts";

/** Something that happened in an organization. */
export type Happening = {
  organizationId: string;
  type: EventType;
  /** The id of what it happened to. */
  subject: string | null;
  /** What there is to tell of it; never a secret. */
  data: object;
};

/**
 * Writes down what happens, in the transaction in which it happens: an event, and a delivery of it for each webhook that
 * is to be told. Neither is there without the change, nor the change without them.
 */
export type Journal = {
  /** Part of the caller's transaction. */
  record(trx: Knex.Transaction, by: By, ...happenings: Happening[]): Promise<void>;
  /** Calls back, soon after a commit, when there may be something to deliver. Returns how to stop that. */
  onRecord(listener: () => void): () => void;
  /** To be called after a commit that `record` had no part in. */
  announce(): void;
};

const DAY_MS = 24 * 60 * 60 * 1000;
// The audit log goes back for a year.
const AUDIT_MS = 365 * DAY_MS;
// A delivery is tried for some three days, and its log is kept for a month.
const DELIVERY_MS = 30 * DAY_MS;

export const EVENT_COLUMNS =
  "id organization_id audited type actor via address subject data created_at expires_at".split(" ");

/** The row of an event. Clicks are told to webhooks, and are no entries of the audit log. */
export function eventRow(by: By, { organizationId, type, subject, data }: Happening): Row {
  const now = Date.now();
  const audited = type !== "link.clicked" && type !== "webhook.test";
  return {
    id: newId("evt"),
    organization_id: organizationId,
    audited,
    type,
    actor: by.actor,
    via: by.via ?? null,
    address: by.address ?? null,
    subject,
    data: JSON.stringify(data),
    created_at: now,
    expires_at: now + (audited ? AUDIT_MS : DELIVERY_MS),
  };
}

/** Makes a delivery for each event among `ids` and each webhook of its organization that asked for it. */
export function addDeliveries(knex: Knex, engine: Engine, ids: unknown[]): Knex.Raw {
  // One alone is hidden from the planner, as in `unplanned`.
  const which = ids.length === 1 ? "= (select ?)" : `in (${ids.map(() => "?").join(", ")})`;
  return knex.raw(
    `insert into deliveries (webhook_id, event_id, status, attempts, due_at, log, created_at, expires_at)
    select w.id, e.id, 'pending', 0, e.created_at, '[]', e.created_at, e.created_at + ${DELIVERY_MS}
    from events e join webhooks w on w.organization_id = e.organization_id
    where e.id ${which} and w.enabled = true and ${holdsColumn(engine)}`,
    [...(ids as string[]), "w.events", "e.type"],
  );
}

/** The journal of a database. */
export function createJournal({ engine }: Pick<Database, "engine">): Journal {
  const listeners = new Set<() => void>();
  const announce = () => {
    for (const listener of listeners) listener();
  };
  return {
    announce,

    async record(trx, by, ...happenings) {
      if (happenings.length === 0) return;
      const rows = happenings.map((happening) => eventRow(by, happening));
      await trx("events").insert(rows);
      await addDeliveries(
        trx,
        engine,
        rows.map(({ id }) => id),
      );
      trx.executionPromise.then(announce, () => {});
    },

    onRecord(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
