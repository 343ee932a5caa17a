import { randomUUID } from "node:crypto";
import { SYSTEM } from "../../resources/events/types.ts";
import { tryTo } from "../../resources/try-to.ts";
import type { Attempt, DeliveryQueue, LeasedDelivery, Outcome } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { createGroupedWrite } from "../database/batches.ts";
import type { Database } from "../database/index.ts";
import type { OrganizationRow } from "../database/tables/organizations.ts";
import type { DeliveryRow, WebhookRow } from "../database/tables/webhooks.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import {
  DELIVERY_COLUMNS,
  decryptUrl,
  encryptExchange,
  encryptionContextOf,
  redactUrl,
  type StoredDelivery,
  toDelivery,
} from "./row.ts";
import { createSelect, lockPaused, pairsOf } from "./select.ts";
import { countTowardQuota } from "./usage.ts";
import { createVerification } from "./verification.ts";

// An attempt takes at most 15 s; after a crash, other processes continue within 20 s.
const LEASE_MS = 18_000;
// How exact the time of the last success is, so that not every success updates the webhook.
const SUCCESS_MS = 60_000;
// Limits the log of a delivery that is resent again and again.
const LOG_MAX = 50;

export function createDeliveryQueue(
  database: Database,
  outbox: Outbox,
  encryption: Encryption,
): DeliveryQueue {
  const { knex, engine, transaction } = database;
  const verification = createVerification(database, outbox);
  const settle = prepareSettle(database);
  const select = createSelect(database);
  return {
    onDue: outbox.onCommit,

    async lease(limits) {
      const now = Date.now();
      const keys = pairsOf(await select(limits, now));
      if (keys.length === 0) return [];
      const lease = randomUUID();
      const rows = await outbox.change(
        SYSTEM,
        async ({ trx, record }) => {
          // Of several processes, the first update postpones the due time, so the others no longer match the row.
          const due = trx("deliveries").whereIn(["webhook_id", "event_id"], keys).where("due_at", "<=", now);
          if ((await due.update({ leased_by: lease, due_at: now + LEASE_MS })) === 0) return [];
          const leased: LeasedRow[] = await trx("deliveries as d")
            .whereIn(["d.webhook_id", "d.event_id"], keys)
            .where({ leased_by: lease })
            .join("webhooks as w", "w.id", "d.webhook_id")
            .join("events as e", "e.id", "d.event_id")
            .join("organizations as o", "o.id", "w.organization_id")
            .select("w.*", ...DELIVERY_COLUMNS, "o.plan", "o.suspended_at", "o.deleted_at");
          return countTowardQuota(trx, leased, { ...limits, engine, record, now });
        },
        // After a power failure, deliveries that are lost with their lease and count are due again, as after a crash.
        { isDurable: false },
      );
      return rows.map((row) => toLeasedDelivery(row, encryption, now));
    },

    async postpone(leased, until) {
      await knex("deliveries").where(keyOf(leased)).update({ due_at: until, leased_by: null });
    },

    async hold(leased) {
      const now = Date.now();
      await transaction(async (trx) => {
        const due_at = (await lockPaused(trx, [leased.webhookId], now)).get(leased.webhookId) ?? now;
        await trx("deliveries").where(keyOf(leased)).update({ due_at, leased_by: null });
      });
    },

    async settle(leased, attempt, outcome, exchange) {
      const { failures, failingSince, slowSince, lastSuccessAt, verifies } = leased;
      const wasHealthy = failures === 0 && failingSince === null && slowSince === null;
      const isKnown = attempt.at < (lastSuccessAt ?? 0) + SUCCESS_MS;
      const isStillHealthy = outcome.status === "succeeded" && !outcome.isSlow && wasHealthy && isKnown;
      const settled = {
        status: outcome.status,
        attempts: leased.attemptCount + 1,
        due_at: outcome.status === "pending" ? outcome.retryAt : null,
        log: JSON.stringify([...leased.attempts, attempt].slice(-LOG_MAX)),
      };
      const encrypted = exchange && encryptExchange(encryption, keyOf(leased), exchange);
      if ((isStillHealthy || outcome.isUnsent) && !verifies) {
        await settle({ ...keyOf(leased), ...settled, exchange: encrypted ?? null });
        return;
      }
      await outbox.change(SYSTEM, async (change) => {
        const { trx } = change;
        const delivery = trx("deliveries").where(keyOf(leased));
        const kept = encrypted === undefined ? {} : { exchange: encrypted };
        const isLeased = (await delivery.update({ ...settled, ...kept, leased_by: null })) > 0;
        if (!isLeased) return; // another process attempts it
        if (!outcome.isUnsent) await updateHealth(change, leased, attempt, outcome);
        if (verifies) await verification.settle(trx, leased, outcome);
      });
    },
  };

  /** Has no effect if the webhook's URL has changed since the lease. */
  async function updateHealth(
    { trx, record }: Change,
    { webhookId, organizationId, url, urlHash, failingSince, slowSince }: LeasedDelivery,
    { at }: Attempt,
    outcome: Outcome,
  ): Promise<void> {
    const webhook = () => trx("webhooks").where({ id: webhookId, url_hash: urlHash });
    if (outcome.status === "succeeded") {
      const slow_since = outcome.isSlow ? (slowSince ?? at) : null;
      const healthy = { failing_since: null, failures: 0, blocked_until: null };
      await webhook().update({ ...healthy, slow_since, last_success_at: at });
      return;
    }
    const { pauseUntil, blockUntil } = outcome.status === "pending" ? outcome : {};
    await webhook().update({
      failing_since: trx.raw("coalesce(failing_since, ?)", [at]),
      failures: trx.raw("failures + 1"),
      ...(pauseUntil !== undefined && { paused_until: pauseUntil }),
      ...(blockUntil !== undefined && { blocked_until: blockUntil }),
    });
    if (outcome.status === "pending" || !outcome.disable) return;
    const disabled = await webhook()
      // Skipped if another attempt has succeeded since the lease.
      .where({ enabled: true, ...(failingSince !== null && { failing_since: failingSince }) })
      .update({ enabled: false, disabled_reason: outcome.disable, updated_at: Date.now() });
    if (!disabled) return;
    const data = { url: redactUrl(url), reason: outcome.disable };
    await record({ organizationId, type: "webhook.disabled", subject: webhookId, data });
  }
}

function keyOf({ webhookId, event, lease }: LeasedDelivery) {
  return { webhook_id: webhookId, event_id: event.id, leased_by: lease };
}

type SettledColumn = Exclude<keyof DeliveryRow, "type" | "created_at" | "expires_at">;

// The first condition is always true, but makes the planner expect few rows. Otherwise it may scan all deliveries.
const SETTLE_ALL = `update deliveries d
  set status = s.status, attempts = s.attempts, due_at = s.due_at, leased_by = null, log = s.log,
    exchange = coalesce(s.exchange, d.exchange)
  from json_populate_recordset(null::deliveries, :rows) s
  where coalesce(s.event_id, '') = s.event_id
    and d.webhook_id = s.webhook_id and d.event_id = s.event_id and d.leased_by = s.leased_by`;

const SETTLE_ONE = `update deliveries
  set status = :status, attempts = :attempts, due_at = :due_at, leased_by = null, log = :log,
    exchange = coalesce(:exchange, exchange)
  where webhook_id = :webhook_id and event_id = :event_id and leased_by = :leased_by`;

/** Records an attempt if it is still leased. On PostgreSQL, concurrent attempts share a statement. */
function prepareSettle({ engine, prepare }: Pick<Database, "engine" | "prepare">) {
  if (engine === "postgres") {
    const settleAll = prepare<unknown, "rows">(SETTLE_ALL);
    return createGroupedWrite(
      async (batch) => void (await settleAll({ rows: JSON.stringify(batch.map(([row]) => row)) })),
    );
  }
  return prepare<number, SettledColumn>(SETTLE_ONE);
}

type LeasedRow = WebhookRow & StoredDelivery & Pick<OrganizationRow, "plan" | "suspended_at" | "deleted_at">;

function toLeasedDelivery(row: LeasedRow, encryption: Encryption, now: number): LeasedDelivery {
  const id = row.webhook_id;
  const secrets = [row.secret, (row.previous_until ?? 0) > now ? row.previous_secret : null];
  return {
    ...toDelivery(row),
    lease: row.leased_by as string,
    webhookId: id,
    organizationId: row.organization_id,
    // One manipulated row must not block the deliveries of all others.
    url: tryTo(() => decryptUrl(encryption, row)) ?? "",
    enabled: Boolean(row.enabled),
    plan: row.deleted_at === null ? row.plan : "free",
    suspended: row.suspended_at !== null,
    attemptCount: row.attempts,
    host: row.host,
    urlHash: row.url_hash,
    failures: row.failures,
    failingSince: row.failing_since,
    lastSuccessAt: row.last_success_at,
    slowSince: row.slow_since,
    pausedUntil: row.paused_until,
    traceparent: row.traceparent,
    verifies: row.verification_event_id === row.event_id,
    unverifiedUntil: row.verification_expires_at,
    secrets: secrets.flatMap((secret) =>
      secret === null ? [] : (tryTo(() => encryption.decryptOften(secret, encryptionContextOf(id))) ?? []),
    ),
  };
}
