import type { Knex } from "knex";
import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";
import type { Change } from "../events/outbox.ts";
import type { ListedDeliveryRow } from "./row.ts";
import { pairsOf } from "./select.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the day of a time: days since January 1, 1970, UTC. */
export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

type Counted = ListedDeliveryRow &
  Pick<WebhookRow, "organization_id" | "paused_until"> &
  Pick<OrganizationRow, "plan" | "suspended_at">;
type Quota = Pick<LeaseLimits, "limitsOf"> & Pick<Change, "record"> & { engine: Engine; now: number };

/** Returns the deliveries within the daily quotas, whose rows stay locked. The others wait until the next day. */
export async function countTowardQuota<Row extends Counted>(
  trx: Knex.Transaction,
  rows: Row[],
  { engine, record, limitsOf, now }: Quota,
): Promise<Row[]> {
  const day = dayOf(now);
  const isCounted = ({ attempts, suspended_at, paused_until }: Counted) =>
    attempts === 0 && suspended_at === null && (paused_until ?? 0) <= now;
  const counted = Map.groupBy(rows.filter(isCounted), ({ organization_id }) => organization_id);
  if (counted.size === 0) return rows;
  // Every process locks rows in the same order, which prevents deadlocks.
  const ids = [...counted.keys()].sort();
  const [newDay, added] = [insertedValue(engine, "day"), insertedValue(engine, "deliveries")];
  await trx("delivery_usage")
    .insert(ids.map((id) => ({ organization_id: id, day, deliveries: counted.get(id)?.length ?? 0 })))
    .onConflict("organization_id")
    // MariaDB assigns from left to right: the count is decided by the day that is stored.
    .merge({
      deliveries: trx.raw(
        `case when delivery_usage.day = ${newDay} then delivery_usage.deliveries + ${added} else ${added} end`,
      ),
      day: trx.raw(newDay),
    });
  const excessive = new Set<Row>();
  for (const { organization_id, deliveries, quota_reached_on } of await usageOf(trx, ids)) {
    const leased = counted.get(organization_id) as [Row];
    const { deliveries_per_day } = limitsOf(leased[0].plan);
    const excess = Math.min(deliveries - deliveries_per_day, leased.length);
    // On a plan without webhooks, the attempt fails with that reason.
    if (deliveries_per_day === 0 || excess <= 0) continue;
    for (const row of leased.slice(-excess)) excessive.add(row);
    await usageOf(trx, [organization_id]).update({ deliveries: deliveries - excess, quota_reached_on: day });
    if (quota_reached_on === day) continue;
    const event = { organizationId: organization_id, subject: null, data: { deliveries_per_day } };
    await record({ type: "webhook.quota_reached", ...event });
  }
  if (excessive.size > 0)
    await trx("deliveries")
      .whereIn(["webhook_id", "event_id"], pairsOf([...excessive]))
      .update({ leased_by: null, due_at: (day + 1) * DAY_MS });
  return rows.filter((row) => !excessive.has(row));
}

function usageOf(trx: Knex.Transaction, organizationIds: string[]) {
  return trx("delivery_usage").whereIn("organization_id", organizationIds);
}
