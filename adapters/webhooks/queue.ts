import { randomUUID } from "node:crypto";
import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Plan } from "../resources/plans.ts";
import type { Attempt, DeliveryQueue, Leased, Outcome, Room } from "../resources/webhooks/ports.ts";
import type { Database } from "./database.ts";
import { DELIVERY_COLUMNS, type DeliveryRow, toDelivery } from "./delivery-row.ts";
import type { Journal } from "./journal.ts";
import type { Seal } from "./seal.ts";
import { sealedFor } from "./webhook-row.ts";

// An attempt takes 15 s at most, and a look for what is due follows each second: what a dead process had leased goes on
// within 20 s.
const LEASE_MS = 18_000;
// So many are looked at for each that is taken, for the sake of webhooks with one event among those with many.
const SPREAD = 4;
// What is sent again and again does not make its log grow for ever.
const LOG_MAX = 50;

type Key = { webhook_id: string; event_id: string };
type Due = Key & { failing_since: number | null };

/** The queue of a database. */
export function createDeliveryQueue(
  { knex, transaction }: Database,
  journal: Journal,
  seal: Seal,
): DeliveryQueue {
  return {
    onDue: journal.onRecord,

    async lease(room) {
      const now = Date.now();
      const keys = spread(await findDue(room, now), room);
      if (keys.length === 0) return [];
      return transaction((trx) => take(trx, keys, now));
    },

    async putOff(leased, until) {
      await own(knex, leased).update({ due_at: until, leased_by: null });
    },

    async settle(leased, attempt, outcome, by) {
      const isHealthy = outcome.status === "succeeded" && leased.failingSince === null;
      if (isHealthy || outcome.isUnsent) return void (await write(knex, leased, attempt, outcome));
      await transaction(async (trx) => {
        if (await write(trx, leased, attempt, outcome)) await mark(trx, leased, attempt, outcome, by);
      });
    },
  };

  /** The oldest of what is due, but of webhooks for which there is room. */
  function findDue({ most, perWebhook, failing, underWay }: Room, now: number): Promise<Due[]> {
    const withMany = (count: number) => [...underWay].filter(([, has]) => has >= count).map(([id]) => id);
    return knex("deliveries as d")
      .leftJoin("webhooks as w", "w.id", "d.webhook_id")
      .where("d.due_at", "<=", now)
      .whereNotIn("d.webhook_id", withMany(perWebhook))
      .where((fine) => {
        fine.whereNull("w.failing_since");
        if (failing.most > 0) fine.orWhereNotIn("d.webhook_id", withMany(failing.perWebhook));
      })
      .orderBy("d.due_at")
      .limit(most * SPREAD)
      .select("d.webhook_id", "d.event_id", "w.failing_since");
  }

  /** Whoever changes a row first has it; its new time keeps all others away. */
  async function take(trx: Knex.Transaction, keys: Key[], now: number): Promise<Leased[]> {
    const lease = randomUUID();
    const chosen = () => trx("deliveries as d").whereIn(...among(keys));
    const taken = await trx("deliveries")
      .whereIn(["webhook_id", "event_id"], pairs(keys))
      .where("due_at", "<=", now)
      .update({ leased_by: lease, due_at: now + LEASE_MS });
    if (taken === 0) return [];
    const rows: LeasedRow[] = await chosen()
      .where({ leased_by: lease })
      .join("webhooks as w", "w.id", "d.webhook_id")
      .join("events as e", "e.id", "d.event_id")
      .join("organizations as o", "o.id", "w.organization_id")
      .select(LEASED_COLUMNS);
    if (rows.length < taken) await dropOrphans(trx, keys, lease);
    return rows.map((row) => toLeased(row, lease, now));
  }

  function toLeased(row: LeasedRow, lease: string, now: number): Leased {
    const hasPrevious = row.previousSecret !== null && (row.previousUntil ?? 0) > now;
    return {
      ...toDelivery(row),
      lease,
      webhookId: row.webhookId,
      organizationId: row.organizationId,
      url: row.url,
      enabled: Boolean(row.enabled),
      plan: row.organizationDeletedAt === null ? row.plan : "free",
      tries: row.tries,
      failingSince: row.failingSince,
      pausedUntil: row.pausedUntil,
      secrets: [row.secret, hasPrevious ? row.previousSecret : null].flatMap((sealed) =>
        open(sealed, row.webhookId),
      ),
    };
  }

  /** Nothing for what was put there by somebody else: a row must not hold all others up. */
  function open(sealed: string | null, webhookId: string): string[] {
    if (sealed === null) return [];
    try {
      return [seal.open(sealed, sealedFor(webhookId))];
    } catch {
      return [];
    }
  }

  /** Notes on the webhook what the attempt says about it: nothing if its URL has changed since the lease. */
  async function mark(
    trx: Knex.Transaction,
    { webhookId, organizationId, url, failingSince }: Leased,
    { at }: Attempt,
    outcome: Outcome,
    by: By,
  ) {
    const webhook = trx("webhooks").where({ id: webhookId, url });
    if (outcome.status === "succeeded") return void (await webhook.update({ failing_since: null }));
    await webhook.clone().whereNull("failing_since").update({ failing_since: at });
    if (outcome.status === "pending" && outcome.pauseUntil !== undefined)
      await webhook.clone().update({ paused_until: outcome.pauseUntil });
    if (!outcome.disable) return;
    const disabled = await webhook
      .clone()
      // Another attempt may have succeeded since.
      .where({ enabled: true, ...(failingSince !== null && { failing_since: failingSince }) })
      .update({ enabled: false, disabled_reason: outcome.disable, updated_at: Date.now() });
    if (!disabled) return;
    const data = { url, reason: outcome.disable };
    await journal.record(trx, by, { organizationId, type: "webhook.disabled", subject: webhookId, data });
  }
}

/** Writes the attempt down if the lease still holds. */
async function write(q: Knex, leased: Leased, attempt: Attempt, outcome: Outcome): Promise<boolean> {
  const changed = await own(q, leased).update({
    status: outcome.status,
    attempts: leased.tries + 1,
    due_at: outcome.status === "pending" ? outcome.retryAt : null,
    leased_by: null,
    log: JSON.stringify([...leased.attempts, attempt].slice(-LOG_MAX)),
  });
  return changed > 0;
}

/** The row of a delivery, while its lease holds. */
function own(q: Knex, { webhookId, event, lease }: Leased) {
  return q("deliveries").where({ webhook_id: webhookId, event_id: event.id, leased_by: lease });
}

/** Deliveries that were made while their webhook was being deleted. */
async function dropOrphans(trx: Knex.Transaction, keys: Key[], lease: string) {
  const alive = trx("webhooks").select("id");
  await trx("deliveries")
    .whereIn(["webhook_id", "event_id"], pairs(keys))
    .where({ leased_by: lease })
    .whereNotIn("webhook_id", alive)
    .delete();
}

/** The first ones for which there is room. */
function spread(due: Due[], { most, perWebhook, failing, underWay }: Room): Key[] {
  const counts = new Map(underWay);
  let failingLeft = failing.most;
  const chosen = due.filter(({ webhook_id: id, failing_since }) => {
    const count = counts.get(id) ?? 0;
    const isFailing = failing_since !== null;
    if (count >= (isFailing ? failing.perWebhook : perWebhook)) return false;
    if (isFailing && failingLeft-- <= 0) return false;
    counts.set(id, count + 1);
    return true;
  });
  return chosen.slice(0, most);
}

const pairs = (keys: Key[]) => keys.map(({ webhook_id, event_id }) => [webhook_id, event_id]);
const among = (keys: Key[]) => [["d.webhook_id", "d.event_id"], pairs(keys)] as const;

type LeasedRow = DeliveryRow & {
  webhookId: string;
  organizationId: string;
  organizationDeletedAt: number | null;
  url: string;
  enabled: boolean | number;
  plan: Plan;
  tries: number;
  failingSince: number | null;
  pausedUntil: number | null;
  secret: string;
  previousSecret: string | null;
  previousUntil: number | null;
};

const LEASED_COLUMNS = {
  ...DELIVERY_COLUMNS,
  webhookId: "w.id",
  organizationId: "w.organization_id",
  organizationDeletedAt: "o.deleted_at",
  url: "w.url",
  enabled: "w.enabled",
  plan: "o.plan",
  tries: "d.attempts",
  failingSince: "w.failing_since",
  pausedUntil: "w.paused_until",
  secret: "w.secret",
  previousSecret: "w.previous_secret",
  previousUntil: "w.previous_until",
};
