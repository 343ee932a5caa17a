import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Limits, Plan } from "../../resources/plans.ts";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { Outbox } from "../events/outbox.ts";
import type { Key } from "./due.ts";
import { pairsOf } from "./hold.ts";
import type { LeasedRow } from "./leased-row.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the day of a time: days since January 1, 1970, UTC. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Returns when the next day begins, UTC. */
export function nextDay(now: number): number {
  return (dayOf(now) + 1) * DAY_MS;
}

type Quota = {
  engine: Engine;
  outbox: Outbox;
  actor: Actor;
  limitsOf: (plan: Plan) => Limits;
  now: number;
};

/**
 * Counts leased deliveries toward their organizations' daily quotas and returns those within them. The others are held
 * until the next day. Retries aren't counted, nor are deliveries that wait although they are due. The rows of the counts stay locked until the transaction ends, so quotas hold
 * under concurrency.
 */
export async function countTowardQuota(
  trx: Knex.Transaction,
  rows: LeasedRow[],
  { engine, outbox, actor, limitsOf, now }: Quota,
): Promise<LeasedRow[]> {
  const counted = Map.groupBy(
    rows.filter((row) => row.attemptCount === 0 && !isWaiting(row, now)),
    ({ organizationId }) => organizationId,
  );
  if (counted.size === 0) return rows;
  const used = await addUsage(trx, engine, counted, dayOf(now));
  const held = new Set<LeasedRow>();
  for (const [organizationId, deliveries] of counted) {
    const limit = limitsOf((deliveries[0] as LeasedRow).plan).deliveries_per_day;
    const excess = Math.min((used.get(organizationId) ?? 0) - limit, deliveries.length);
    // On a plan without webhooks, the attempt fails with that reason.
    if (limit === 0 || excess <= 0) continue;
    for (const row of deliveries.slice(-excess)) held.add(row);
    await reachQuota(trx, organizationId, excess, dayOf(now), () =>
      outbox.record(trx, actor, {
        organizationId,
        type: "webhook.quota_reached",
        subject: null,
        data: { deliveries_per_day: limit },
      }),
    );
  }
  await release(trx, [...held], nextDay(now));
  return rows.filter((row) => !held.has(row));
}

/** Returns whether a leased delivery goes back to the queue unsent, to be leased again and counted then. */
function isWaiting({ suspendedAt, pausedUntil }: LeasedRow, now: number): boolean {
  return suspendedAt !== null || (pausedUntil !== null && pausedUntil > now);
}

/** Adds deliveries to the usage of a day. Returns the usage by organization, including them. */
async function addUsage(
  trx: Knex.Transaction,
  engine: Engine,
  counted: Map<string, LeasedRow[]>,
  day: number,
): Promise<Map<string, number>> {
  // Every process locks rows in the same order, which prevents deadlocks.
  const ids = [...counted.keys()].sort();
  const added = ids.map((organization_id) => ({
    organization_id,
    day,
    deliveries: counted.get(organization_id)?.length ?? 0,
  }));
  const [newDay, newCount] = [insertedValue(engine, "day"), insertedValue(engine, "deliveries")];
  await trx("delivery_usage")
    .insert(added)
    .onConflict("organization_id")
    // MariaDB assigns from left to right: the count is decided by the day that is stored.
    .merge({
      deliveries: trx.raw(
        `case when delivery_usage.day = ${newDay} then delivery_usage.deliveries + ${newCount} else ${newCount} end`,
      ),
      day: trx.raw(newDay),
    });
  const rows = await trx("delivery_usage")
    .whereIn("organization_id", ids)
    .select("organization_id", "deliveries");
  return new Map(rows.map(({ organization_id, deliveries }) => [organization_id, deliveries]));
}

/** Takes the excess off the usage of a day, and calls `onFirst` once per day. */
async function reachQuota(
  trx: Knex.Transaction,
  organization_id: string,
  excess: number,
  day: number,
  onFirst: () => Promise<void>,
): Promise<void> {
  await trx("delivery_usage").where({ organization_id }).decrement("deliveries", excess);
  const isFirst = await trx("delivery_usage")
    .where({ organization_id })
    .where((other) => other.whereNull("quota_reached_on").orWhere("quota_reached_on", "<", day))
    .update({ quota_reached_on: day });
  if (isFirst) await onFirst();
}

/** Returns leased deliveries to the queue. */
async function release(trx: Knex.Transaction, rows: LeasedRow[], until: number): Promise<void> {
  if (rows.length === 0) return;
  const keys: Key[] = rows.map(({ webhookId, eventId }) => ({ webhook_id: webhookId, event_id: eventId }));
  await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairsOf(keys))
    .update({ leased_by: null, due_at: until });
}
