import type { Knex } from "knex";
import { WEBHOOK_EVENTS } from "../../resources/events/delivered-events.ts";
import type { DeliveryFilter, DeliveryLog, DeliveryStatus } from "../../resources/webhooks/types.ts";
import type { Encryption } from "../crypto/encryption.ts";
import { pendingWebhook, rowsOf } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { DeliveryRow } from "../database/tables/webhooks.ts";
import type { Outbox } from "../events/outbox.ts";
import { DELIVERY_COLUMNS, decryptExchange, type StoredDelivery, toDelivery } from "./row.ts";

const DELIVERY_STATUSES: DeliveryStatus[] = ["pending", "succeeded", "failed"];

// How many deliveries one statement resends: few enough to let other requests pass in between.
const RESENT_TOGETHER = 500;

export function createDeliveryLog(
  database: Pick<Database, "knex" | "engine">,
  outbox: Outbox,
  encryption: Encryption,
): DeliveryLog {
  const { knex } = database;
  /** Merges the newest of each type and status, which the index of the log has in order. */
  async function findIds(id: string, { status, type }: DeliveryFilter, limit: number, before?: string) {
    const statuses = status ? [status] : DELIVERY_STATUSES;
    const types = type ? [type] : WEBHOOK_EVENTS;
    const behind = before === undefined ? [] : [before];
    const branch = `select * from (select event_id from deliveries
      where webhook_id = ? and type = ? and status = ?${before === undefined ? "" : " and event_id < ?"}
      order by event_id desc limit ?) as newest`;
    const branches = types.flatMap((one) => statuses.map((other) => [id, one, other, ...behind, limit]));
    const newest = await knex.raw(
      `${branches.map(() => branch).join(" union all ")} order by event_id desc limit ?`,
      [...branches.flat(), limit],
    );
    return rowsOf<Pick<DeliveryRow, "event_id">>(newest).map(({ event_id }) => event_id);
  }

  function failedOf(organizationId: string, id: string) {
    return knex("deliveries")
      .where({ webhook_id: id, status: "failed" })
      .whereIn("type", WEBHOOK_EVENTS)
      .whereExists(knex("webhooks").where({ id, organization_id: organizationId }).select("id"));
  }

  const log: DeliveryLog = {
    async nextDelivery(organizationId, id) {
      const pending = deliveriesOf(knex, organizationId, id).where("d.status", "pending");
      const next = await pending.whereNotNull("d.due_at").orderBy("d.due_at").first();
      return next && !next.waits ? toDelivery(next) : undefined;
    },

    async findDelivery(organizationId, id, eventId) {
      const row = await deliveriesOf(knex, organizationId, id)
        .where("d.event_id", eventId)
        .select<(StoredDelivery & Pick<DeliveryRow, "exchange">)[]>("d.exchange")
        .first();
      return row && { ...toDelivery(row), exchange: decryptExchange(encryption, row) };
    },

    async deliveries(organizationId, id, limit, before, filter = {}) {
      const query = deliveriesOf(knex, organizationId, id).orderBy("d.event_id", "desc").limit(limit);
      if (filter.status || filter.type) query.whereIn("d.event_id", await findIds(id, filter, limit, before));
      else if (before) query.where("d.event_id", "<", before);
      return (await query).map(toDelivery);
    },

    async countFailed(organizationId, id, max) {
      const failed = failedOf(organizationId, id).limit(max).select("event_id").as("failed");
      const [row] = await knex.from(failed).count({ total: "*" });
      return Number(row?.total);
    },

    async resend(organizationId, id, eventId) {
      if (!(await log.findDelivery(organizationId, id, eventId))) return undefined;
      await unblock(knex, id);
      await knex("deliveries")
        .where({ webhook_id: id, event_id: eventId })
        .where((unleased) => unleased.whereNull("leased_by").orWhere("due_at", "<=", Date.now()))
        .update(dueAt(await firstDue(database, knex, id)));
      outbox.notify();
      return log.findDelivery(organizationId, id, eventId);
    },

    async resendFailed(organizationId, id, max) {
      let resent = 0;
      for (let isMore = true; isMore && resent < max; ) {
        const limit = Math.min(RESENT_TOGETHER, max - resent);
        const ids = await failedOf(organizationId, id).limit(limit).pluck("event_id");
        isMore = ids.length === limit;
        if (ids.length === 0) break;
        const failed = knex("deliveries")
          .where({ webhook_id: id, status: "failed" })
          .whereIn("event_id", ids);
        resent += await failed.update(dueAt(Date.now()));
      }
      if (resent > 0) await unblock(knex, id);
      outbox.notify();
      return resent;
    },
  };
  return log;
}

function dueAt(due_at: number) {
  return { status: "pending" as const, attempts: 0, due_at, leased_by: null };
}

/** Returns a time before those of all due deliveries of a webhook. A failing endpoint gets them one at a time. */
export async function firstDue({ engine }: Pick<Database, "engine">, q: Knex, id: string): Promise<number> {
  const { column, isPending } = pendingWebhook(engine);
  const oldest = await q("deliveries")
    .where(column as "webhook_id", id)
    .whereRaw(isPending)
    .min({ due: "due_at" })
    .first();
  return Math.min(Date.now(), Number(oldest?.due ?? Infinity) - 1);
}

/** Allows attempts after repeated failures, since a user who asks for one expects it now. */
export async function unblock(q: Knex, id: string): Promise<void> {
  await q("webhooks").where({ id }).whereNotNull("blocked_until").update({ blocked_until: null });
}

// Whether the delivery of a webhook `w` waits for its verification.
const WAITS =
  "(w.verification_expires_at is not null and coalesce(w.verification_event_id, '') <> e.id) as waits";

function deliveriesOf(knex: Knex, organizationId: string, webhookId: string) {
  return knex("deliveries as d")
    .join("webhooks as w", "w.id", "d.webhook_id")
    .join("events as e", "e.id", "d.event_id")
    .where({ "d.webhook_id": webhookId, "w.organization_id": organizationId })
    .select<StoredDelivery[]>(...DELIVERY_COLUMNS, knex.raw(WAITS));
}
