import type { Attempt, LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import { createGroupedWrite } from "../database/grouped-write.ts";
import type { Database } from "../database/index.ts";
import type { DeliveryRow } from "../database/tables.ts";

// Limits the log of a delivery that is resent again and again.
const LOG_MAX = 50;

/** The key of a leased delivery, and its columns after an attempt. */
export type SettledRow = Pick<
  DeliveryRow,
  "webhook_id" | "event_id" | "status" | "attempts" | "due_at" | "log"
> & { leased_by: string };

/** Returns the row of a leased delivery after an attempt. Its log has the last 50 attempts. */
export function settledRow(leased: LeasedDelivery, attempt: Attempt, outcome: Outcome): SettledRow {
  return {
    webhook_id: leased.webhookId,
    event_id: leased.event.id,
    leased_by: leased.lease,
    status: outcome.status,
    attempts: leased.attemptCount + 1,
    due_at: outcome.status === "pending" ? outcome.retryAt : null,
    log: JSON.stringify([...leased.attempts, attempt].slice(-LOG_MAX)),
  };
}

// The first condition is always true, but makes the planner expect few rows. Otherwise it may scan all deliveries.
const SETTLE_ALL = `update deliveries d
  set status = s.status, attempts = s.attempts, due_at = s.due_at, leased_by = null, log = s.log
  from json_populate_recordset(null::deliveries, ?) s
  where coalesce(s.event_id, '') = s.event_id
    and d.webhook_id = s.webhook_id and d.event_id = s.event_id and d.leased_by = s.leased_by`;

/**
 * Prepares the write that records an attempt and ends the lease. It changes nothing if the lease has expired. On PostgreSQL,
 * concurrent attempts share a statement and its commit.
 */
export function prepareSettle({
  engine,
  prepare,
}: Pick<Database, "engine" | "prepare">): (row: SettledRow) => Promise<unknown> {
  if (engine === "postgres") {
    const settleAll = prepare<unknown, "rows">((q, { rows }) => q.raw(SETTLE_ALL, [rows]));
    return createGroupedWrite(
      async (batch) => void (await settleAll({ rows: JSON.stringify(batch.map(([row]) => row)) })),
    );
  }
  return prepare<number, keyof SettledRow>((q, row) =>
    q("deliveries")
      .where({ webhook_id: row.webhook_id, event_id: row.event_id, leased_by: row.leased_by })
      .update({
        status: row.status,
        attempts: row.attempts,
        due_at: row.due_at,
        leased_by: null,
        log: row.log,
      }),
  );
}
