import type { Knex } from "knex";
import type { LeaseLimits } from "../../resources/webhooks/types.ts";
import { nextPending, rowsOf } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { WebhookRow } from "../database/tables/webhooks.ts";

export type Key = { webhook_id: string; event_id: string };

const COLUMNS = [
  ...(["id", "organization_id", "host", "failing_since", "slow_since", "paused_until"] as const),
  ...(["blocked_until", "verification_event_id", "verification_expires_at"] as const),
];

/** A webhook with due deliveries, and their keys unless there are too many to read them all. */
type DueWebhook = Pick<WebhookRow, (typeof COLUMNS)[number]> & { keys?: Key[] };
/** The columns of the webhook are null if it was deleted. */
type Found = DueWebhook & Pick<Key, "webhook_id">;

// How many of the oldest due deliveries are read. If there are more, webhooks are visited in turn instead.
const READ_MAX = 200;
// How many webhooks are visited in one statement. Each takes two lookups in an index.
const WEBHOOKS_MAX = 500;
// How many of these are paused at a time, and how many deliveries of each.
const PAUSED_MAX = 10;
const PAUSED_READ_MAX = 100;

/** Selects deliveries of each organization in turn. A process remembers whose turn it is. */
export function createSelect({ knex, engine, transaction, prepare }: Database) {
  const columns = COLUMNS.map((column) => `w.${column}`).join(", ");
  // Prepared, because it runs up to 50 times per second while links are created.
  const findOldest = prepare<(Found & Key)[], "now">(
    `select d.webhook_id, d.event_id, ${columns} from deliveries as d
    left join webhooks as w on w.id = d.webhook_id
    where d.due_at <= :now order by d.due_at limit ${READ_MAX}`,
  );
  const findPending = prepare<(Found & { due_at: number | null })[], "last">(
    `select p.webhook_id, p.due_at, ${columns} from (${nextPending(engine, WEBHOOKS_MAX)}) as p
    left join webhooks as w on w.id = p.webhook_id order by p.webhook_id`,
  );
  let lastOrganization = "";
  let lastWebhook = "";

  return async function select(limits: LeaseLimits, now: number): Promise<Key[]> {
    for (let passes = lastWebhook === "" ? 1 : 2; passes > 0; ) {
      const keys = await selectFrom(await findDue(now), limits, now);
      if (keys.length > 0) return keys;
      if (lastWebhook === "") passes--;
    }
    return [];
  };

  async function findDue(now: number): Promise<DueWebhook[]> {
    const oldest = await deleteOrphans(await findOldest({ now }));
    if (oldest.length < READ_MAX) {
      lastWebhook = "";
      const byWebhook = Map.groupBy(oldest, ({ webhook_id }) => webhook_id);
      return [...byWebhook.values()].map((keys) => ({ ...(keys[0] as Found), keys }));
    }
    const pending = await findPending({ last: lastWebhook });
    lastWebhook = pending[WEBHOOKS_MAX - 1]?.webhook_id ?? "";
    return pending.filter(({ id, due_at }) => id !== null && due_at !== null && due_at <= now);
  }

  /** Deletes deliveries that were created while their webhooks were being deleted. Returns the others. */
  async function deleteOrphans(found: (Found & Key)[]) {
    const orphans = found.filter(({ id }) => id === null).map(({ webhook_id }) => webhook_id);
    if (orphans.length > 0) await knex("deliveries").whereIn("webhook_id", orphans).delete();
    return found.filter(({ id }) => id !== null);
  }

  async function selectFrom(webhooks: DueWebhook[], limits: LeaseLimits, now: number): Promise<Key[]> {
    const isPaused = (one: DueWebhook) => pauseOf(one, now) > now;
    const paused = webhooks.filter(isPaused).filter(({ keys }, index) => keys || index < PAUSED_MAX);
    const open = [...webhooks.filter((one) => !isPaused(one)), ...(await pause(paused, now))];
    const candidates = open.filter(({ blocked_until }) => blocked_until === null || blocked_until <= now);
    const { counts, last } = allot(candidates, limits, lastOrganization);
    lastOrganization = last;
    const allotted = candidates.filter(({ id }) => counts.has(id));
    return readKeys(allotted, (id) => counts.get(id) ?? 0, now);
  }

  async function readKeys(
    webhooks: DueWebhook[],
    countOf: (id: string) => number,
    now: number,
  ): Promise<Key[]> {
    const known = webhooks.flatMap(({ id, keys }) => keys?.slice(0, countOf(id)) ?? []);
    const unread = webhooks.flatMap(({ id, keys }) => (keys ? [] : [[id, now, countOf(id)]]));
    if (unread.length === 0) return known;
    const read = await knex.raw(unread.map(() => OLDEST).join(" union all "), unread.flat());
    return [...known, ...rowsOf<Key>(read)];
  }

  /** Returns the webhooks with the test events that verify them, which may be sent. */
  async function pause(webhooks: DueWebhook[], now: number): Promise<DueWebhook[]> {
    const keys = await readKeys(webhooks, () => PAUSED_READ_MAX, now);
    const unverified = webhooks.filter(({ paused_until }) => (paused_until ?? 0) <= now);
    const testIds = new Set(unverified.map(({ verification_event_id }) => verification_event_id));
    const tests = keys.filter(({ event_id }) => testIds.has(event_id));
    const byWebhook = Map.groupBy(
      keys.filter((key) => !tests.includes(key)),
      ({ webhook_id }) => webhook_id,
    );
    const pauseAll = async (trx: Knex.Transaction) => {
      for (const [id, until] of await lockPaused(trx, [...byWebhook.keys()], now))
        await trx("deliveries")
          .whereIn(["webhook_id", "event_id"], pairsOf(byWebhook.get(id) ?? []))
          // Leased ones aren't due.
          .where("due_at", "<=", now)
          .update({ due_at: until });
    };
    // After a power failure, deliveries whose pause is lost are paused again.
    if (byWebhook.size > 0) await transaction(pauseAll, { isDurable: false });
    return webhooks.map((one) => ({ ...one, keys: tests.filter(({ webhook_id }) => webhook_id === one.id) }));
  }
}

function pauseOf({ paused_until, verification_expires_at }: DueWebhook, now: number): number {
  const isPaused = paused_until !== null && paused_until > now;
  return (isPaused ? paused_until : verification_expires_at) ?? 0;
}

/** Returns until when webhooks are paused. The lock orders this before the end of a verification, or prevents it. */
export async function lockPaused(trx: Knex.Transaction, ids: string[], now: number) {
  const webhooks = await trx("webhooks").whereIn("id", ids).orderBy("id").forUpdate();
  const paused = webhooks.filter((one) => pauseOf(one, now) > now);
  return new Map(paused.map((one) => [one.id, pauseOf(one, now)]));
}

/** Allots one delivery of each organization in turn, after `last`, and one of each webhook in turn within it. */
function allot(webhooks: DueWebhook[], limits: LeaseLimits, last: string) {
  const { inFlight, slow, failing } = limits;
  const used = new Map(inFlight);
  const counts = new Map<string, number>();
  const queues = [...Map.groupBy(webhooks, ({ organization_id }) => organization_id)]
    .sort(([one], [other]) => Number(one <= last) - Number(other <= last) || (one < other ? -1 : 1))
    .map(([, queue]) => queue);
  const take = ({ id, host, organization_id, failing_since, slow_since }: DueWebhook) => {
    const isFailing = failing_since !== null || slow_since !== null || slow.has(id);
    const places: [key: string, limit: number][] = [
      ["", limits.max],
      [id, isFailing ? failing.perWebhook : limits.perWebhook],
      [host, limits.perHost],
      [organization_id, limits.perOrganization],
    ];
    if (isFailing) {
      places.push(["failing", failing.max], [`failing ${host}`, failing.perHost]);
      places.push([`failing ${organization_id}`, failing.perOrganization]);
    }
    const isFree = places.every(([key, limit]) => (used.get(key) ?? 0) < limit);
    if (isFree) for (const [key] of places) used.set(key, (used.get(key) ?? 0) + 1);
    return isFree;
  };
  const takeOne = (queue: DueWebhook[]) => {
    for (let webhook = queue.shift(); webhook; webhook = queue.shift()) {
      const count = counts.get(webhook.id) ?? 0;
      if (count === webhook.keys?.length || !take(webhook)) continue;
      counts.set(webhook.id, count + 1);
      last = webhook.organization_id;
      queue.push(webhook);
      return true;
    }
    return false;
  };
  for (let turns = queues; turns.length > 0; ) turns = turns.filter(takeOne);
  return { counts, last };
}

// Knex takes longer to build as many queries than the database to run them.
const OLDEST = `select * from (
  select webhook_id, event_id from deliveries where webhook_id = ? and due_at <= ? order by due_at limit ?
) as oldest`;

export function pairsOf(keys: Key[]): string[][] {
  return keys.map(({ webhook_id, event_id }) => [webhook_id, event_id]);
}
