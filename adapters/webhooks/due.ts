import type { Knex } from "knex";
import type { Plan } from "../../resources/plans.ts";
import { type Engine, pendingWebhook } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { padded } from "../database/padded.ts";
import { unplannedParameter } from "../database/prepared-statements.ts";

/** A webhook with due deliveries. All columns except the ID are null if it was deleted. */
export type DueWebhook = {
  id: string;
  organizationId: string | null;
  plan: Plan | null;
  host: string | null;
  failingSince: number | null;
  slowSince: number | null;
  pausedUntil: number | null;
  blockedUntil: number | null;
  verificationEventId: string | null;
  verificationExpiresAt: number | null;
};

/** The key of a delivery. */
export type Key = { webhook_id: string; event_id: string };

/** Webhooks with due deliveries, and the oldest of these deliveries; `keys` is undefined if they must be read by webhook. */
export type Due = { webhooks: DueWebhook[]; keys?: Key[]; next?: string | undefined };

// How many of the oldest due deliveries are read. If there are more, webhooks are read in turn instead.
const READ_MAX = 200;
// How many webhooks are visited in one statement. Each takes two lookups in an index.
const WEBHOOKS_MAX = 500;

const WEBHOOK_COLUMNS = {
  organizationId: "w.organization_id",
  plan: "o.plan",
  host: "w.host",
  failingSince: "w.failing_since",
  slowSince: "w.slow_since",
  pausedUntil: "w.paused_until",
  blockedUntil: "w.blocked_until",
  verificationEventId: "w.verification_event_id",
  verificationExpiresAt: "w.verification_expires_at",
};

/** Finds all due deliveries, or resolves to undefined if there are too many. */
export type FindDue = (now: number) => Promise<Due | undefined>;

/** Prepares `FindDue`, which runs up to 50 times per second while links are created. */
export function prepareFindDue({ prepare }: Pick<Database, "prepare">): FindDue {
  const find = prepare<(DueWebhook & Key)[], "now">((q, { now }) =>
    q("deliveries as d")
      .leftJoin("webhooks as w", "w.id", "d.webhook_id")
      .leftJoin("organizations as o", "o.id", "w.organization_id")
      .where("d.due_at", "<=", unplannedParameter(q, now))
      .orderBy("d.due_at")
      // A bound limit would make SQLite plan the query each time, too.
      .limit(READ_MAX, { skipBinding: true })
      .select("d.webhook_id", "d.event_id", { id: "d.webhook_id", ...WEBHOOK_COLUMNS }),
  );
  return async (now) => {
    const rows = await find({ now });
    if (rows.length === READ_MAX) return undefined;
    const webhooks = new Map(rows.map(({ webhook_id, event_id, ...webhook }) => [webhook.id, webhook]));
    return { webhooks: [...webhooks.values()], keys: rows };
  };
}

/** Returns whether there are too many due deliveries for `findDue`. Takes less time than reading them. */
export async function hasTooManyDue(knex: Knex, now: number): Promise<boolean> {
  const last = await knex("deliveries")
    .where("due_at", "<=", now)
    .orderBy("due_at")
    .offset(READ_MAX - 1)
    .first("due_at");
  return last !== undefined;
}

/**
 * Finds webhooks with due deliveries, in the order of their IDs after `after`. It jumps from webhook to webhook, so the
 * number of their deliveries doesn't matter. `next` is where to continue.
 */
export async function findDueWebhooks(knex: Knex, engine: Engine, now: number, after: string): Promise<Due> {
  const { column, isPending } = pendingWebhook(engine);
  const visited = `with recursive visited (id, step) as (
    select min(${column}), 1 from deliveries where ${column} > ? and ${isPending}
    union all
    select (select min(d.${column}) from deliveries d where d.${column} > visited.id and ${isPending}), step + 1
    from visited where visited.id is not null and step < ${WEBHOOKS_MAX}
  )
  select v.id,
    (select min(d.due_at) from deliveries d where d.${column} = v.id and ${isPending}) as due_at
  from visited v where v.id is not null`;
  const rows = rowsOf<{ id: string; due_at: number }>(await knex.raw(`${visited} order by v.id`, [after]));
  const ids = rows.filter(({ due_at }) => due_at <= now).map(({ id }) => id);
  const found: DueWebhook[] = await knex("webhooks as w")
    .leftJoin("organizations as o", "o.id", "w.organization_id")
    .whereIn("w.id", padded(ids))
    .select({ id: "w.id", ...WEBHOOK_COLUMNS });
  const known = new Map(found.map((webhook) => [webhook.id, webhook]));
  return {
    webhooks: ids.map((id) => known.get(id) ?? deletedWebhook(id)),
    next: rows.length === WEBHOOKS_MAX ? rows.at(-1)?.id : undefined,
  };
}

// Knex takes longer to build as many queries than the database to run them.
const OLDEST = `select * from (
  select webhook_id, event_id from deliveries where webhook_id = ? and due_at <= ? order by due_at limit ?
) as oldest`;

/** Reads the oldest due deliveries of webhooks, up to a number of each. */
export async function readKeys(knex: Knex, counts: Map<string, number>, now: number): Promise<Key[]> {
  if (counts.size === 0) return [];
  // A repeated webhook would return its deliveries again, so the list is padded with no webhook.
  const webhooks = [
    ...counts,
    ...padded([...counts])
      .slice(counts.size)
      .fill(["", 0]),
  ];
  const bindings = webhooks.flatMap(([id, count]) => [id, now, count]);
  return rowsOf(await knex.raw(webhooks.map(() => OLDEST).join(" union all "), bindings));
}

function deletedWebhook(id: string): DueWebhook {
  return {
    id,
    organizationId: null,
    plan: null,
    host: null,
    failingSince: null,
    slowSince: null,
    pausedUntil: null,
    blockedUntil: null,
    verificationEventId: null,
    verificationExpiresAt: null,
  };
}

/** Returns the rows of a raw query, which each driver returns in another form. */
function rowsOf<Row>(result: unknown): Row[] {
  if (!Array.isArray(result)) return (result as { rows: Row[] }).rows;
  return (Array.isArray(result[0]) ? result[0] : result) as Row[];
}
