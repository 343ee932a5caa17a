import type { DeliveryStatus, WebhookHealth, WebhookStore } from "../../resources/webhooks/types.ts";
import { idBound } from "../crypto/ids.ts";
import { pendingWebhook } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";

// How long the database may take to count.
const READ_MS = 10_000;

type NextRow = Pick<WebhookRow, "id" | "blocked_until" | "paused_until" | "failures"> & {
  due_at: number | null;
};
// Some engines return counts as strings.
type CountRow = { webhook_id: string; status: DeliveryStatus; total: number | string };

/** Reads the health of an organization's webhooks from their deliveries, with two queries for all of them. */
export function createHealth({ knex, engine, readAside }: Database): WebhookStore["health"] {
  const { column, isPending } = pendingWebhook(engine);
  // Until a webhook is verified, only the test event that verifies it is sent.
  const due = `case when w.verification_expires_at is null
    then (select min(d.due_at) from deliveries d where d.${column} = w.id and ${isPending})
    else (select d.due_at from deliveries d where d.webhook_id = w.id and d.event_id = w.verification_event_id)
    end as due_at`;

  return async function health(organizationId, since, max) {
    const next: NextRow[] = await knex("webhooks as w")
      .where("w.organization_id", organizationId)
      .select("w.id", "w.blocked_until", "w.paused_until", "w.failures", knex.raw(due));
    const found = new Map<string, WebhookHealth>();
    for (const { id, due_at, blocked_until, paused_until, failures } of next)
      found.set(id, {
        nextAttemptAt: due_at === null ? null : Math.max(due_at, blocked_until ?? 0, paused_until ?? 0),
        blockedUntil: blocked_until,
        pausedUntil: paused_until,
        failures,
        counts: { pending: 0, succeeded: 0, failed: 0 },
      });
    if (found.size === 0) return found;
    const counts = [...found.keys()].map((id) =>
      knex
        .from(
          knex("deliveries")
            .where({ webhook_id: id })
            .where("event_id", ">=", idBound("evt", since))
            .orderBy("event_id", "desc")
            .limit(max)
            .select("webhook_id", "status")
            .as("recent"),
        )
        .groupBy("webhook_id", "status")
        .select("webhook_id", "status")
        .count({ total: "*" }),
    );
    for (const { webhook_id, status, total } of await readAside<CountRow>(knex.unionAll(counts), READ_MS)) {
      const webhook = found.get(webhook_id);
      if (webhook) webhook.counts[status] = Number(total);
    }
    return found;
  };
}
