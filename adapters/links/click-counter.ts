import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import { SYSTEM } from "../../resources/events/types.ts";
import type { Click, ResolvedLink } from "../../resources/links/types.ts";
import { containsText } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { withRetries } from "../database/retry.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import { addDeliveries, eventRow, type Outbox, type TraceColumn, withoutTrace } from "../events/outbox.ts";

// How many clicks a crash may lose, and how long other processes may not see a click, unless the processor or database
// is busy.
const FLUSH_INTERVAL_MS = 100;
const MAX_ROWS = 500;
// Enough for a hundred thousand events per second. Limits memory while storing keeps failing.
const MAX_PENDING_EVENTS = 10_000;
// The smallest unit in which integrators would look at clicks. A person doesn't notice the delay.
const WINDOW_MS = 1000;
// Limits memory. With more links clicked in a second, some have more than one event.
const MAX_LINKS = 10_000;

type Count = Pick<ResolvedLink, "clicks" | "botClicks">;
/** An event of one or more clicks on a link, described by the first one. `uncounted` of them are not yet counted. */
type PendingEvent = {
  link: ResolvedLink;
  click: Click;
  count: Count;
  uncounted: Count;
  trace: TraceColumn;
};
type Batch = { counts: Map<string, Count>; latest: number; pending: PendingEvent[] };

const NONE: Count = { clicks: 0, botClicks: 0 };
const ONE = { person: { clicks: 1, botClicks: 0 }, bot: { clicks: 0, botClicks: 1 } };

export type ClickCounter = ReturnType<typeof createClickCounter>;

/** Creates the click counter of one process. */
export function createClickCounter(database: Database, outbox: Outbox) {
  const { knex, engine, prepare, transaction } = database;
  const { trace } = outbox;
  const buffer = createWriteBehindBuffer<Batch>({ gatherMs: FLUSH_INTERVAL_MS, empty, store, carry });
  const coalescer = createClickCoalescer(add);

  const countBelowLimit = prepare<number, "id" | "clickedAt" | keyof Count>(
    (q, { id, clickedAt, clicks, botClicks }) =>
      q("links")
        .where({ id })
        .whereNull("deleted_at")
        .whereRaw("clicks + bot_clicks < max_clicks")
        .update({ ...sumsWith(q, { clicks, botClicks }), last_clicked_at: clickedAt }),
  );

  function add(event: PendingEvent) {
    const { link, click, uncounted } = event;
    const batch = buffer.next();
    addCount(batch.counts, link.id, uncounted);
    batch.latest = Math.max(batch.latest, click.clickedAt);
    if (batch.pending.length < MAX_PENDING_EVENTS) batch.pending.push(event);
  }

  /** Stores the clicks with an event together with it, then the others. */
  async function store(batch: Batch) {
    const subscribed = await findSubscribed(batch.pending);
    const delivered = batch.pending.filter(({ link }) => subscribed.has(link.organizationId));
    batch.pending = coalescer.take(delivered);
    while (batch.pending.length > 0) await storeEvents(batch);
    await storeCounts(batch);
  }

  async function findSubscribed(pending: PendingEvent[]): Promise<Set<string>> {
    const organizations = [...new Set(pending.map(({ link }) => link.organizationId))];
    if (organizations.length === 0) return new Set();
    const subscribed = await knex("webhooks")
      .whereIn("organization_id", organizations)
      .where({ enabled: true })
      .whereRaw(containsText(engine), ["events", "link.clicked"])
      .pluck("organization_id");
    return new Set(subscribed);
  }

  async function storeEvents(batch: Batch) {
    const pending = batch.pending.slice(0, MAX_ROWS);
    const counts: Batch["counts"] = new Map();
    for (const { link, uncounted } of pending) addCount(counts, link.id, uncounted);
    const events = pending.map(toEvent);
    const ids = events.map(({ id }) => id);
    await transaction(async (trx) => {
      for (const [count, links] of groupByCount(counts)) await addClicks(trx, links, count, batch.latest);
      await trx("events").insert(events);
      await addDeliveries(trx, engine, ids);
    });
    outbox.notify();
    batch.pending = batch.pending.slice(MAX_ROWS);
    for (const [id, { clicks, botClicks }] of counts)
      addCount(batch.counts, id, { clicks: -clicks, botClicks: -botClicks });
  }

  /** Updates links with the same count together, as most have one click. Each group is stored once or not at all. */
  async function storeCounts({ counts, latest }: Batch) {
    for (const [count, ids] of groupByCount(counts)) {
      for (let start = 0; start < ids.length; start += MAX_ROWS) {
        const chunk = ids.slice(start, start + MAX_ROWS);
        await withRetries(() => addClicks(knex, chunk, count, latest), false);
        for (const id of chunk) counts.delete(id);
      }
    }
  }

  return {
    /**
     * Resolves to false if `max_clicks` is reached, which is exact under concurrency. Without this limit, the click is
     * stored after a short delay; a crash loses at most the clicks of that delay.
     */
    async count(link: ResolvedLink, click: Click): Promise<boolean> {
      const isLimited = link.maxClicks !== null;
      const count = click.bot ? ONE.bot : ONE.person;
      const { clickedAt } = click;
      if (isLimited && !(await countBelowLimit({ id: link.id, clickedAt, ...count }))) return false;
      add({ link, click, count, uncounted: isLimited ? NONE : count, trace: trace.of("link.clicked") });
      return true;
    },
    /** Resolves when the clicks so far are stored, or failed once: reads then fail as well. */
    settled: buffer.settled,
    /** Resolves when nothing is left to store, after as many attempts as that takes. */
    async drained() {
      coalescer.end();
      await buffer.drained();
    },
  };
}

async function addClicks(q: Knex, ids: string[], count: Count, latest: number): Promise<void> {
  await q("links")
    .whereIn("id", ids)
    .update({ ...sumsWith(q, count), last_clicked_at: latest });
}

function sumsWith(q: Knex, { clicks, botClicks }: Record<keyof Count, number | Knex.Raw>) {
  return { clicks: q.raw("clicks + ?", [clicks]), bot_clicks: q.raw("bot_clicks + ?", [botClicks]) };
}

function merge(first: PendingEvent, later: PendingEvent): PendingEvent {
  const [count, uncounted] = [sum(first.count, later.count), sum(first.uncounted, later.uncounted)];
  return { ...first, count, uncounted, trace: withoutTrace(first.trace) };
}

function sum(one: Count, other: Count): Count {
  return { clicks: one.clicks + other.clicks, botClicks: one.botClicks + other.botClicks };
}

function toEvent({ link, click, count, trace }: PendingEvent) {
  const { id, organizationId, slug, url } = link;
  const { clickedAt, referrer, country, device, browser, operatingSystem } = click;
  const clicked_at = new Date(clickedAt).toISOString();
  const counted = { clicks: count.clicks, bot_clicks: count.botClicks };
  const source = { referrer, country, device, browser, operating_system: operatingSystem };
  const data = { link_id: id, slug, url, clicked_at, ...counted, ...source };
  return eventRow(SYSTEM, { organizationId, type: "link.clicked", subject: id, data }, trace);
}

function empty(): Batch {
  return { counts: new Map(), latest: 0, pending: [] };
}

function carry(failed: Batch, next: Batch): void {
  for (const [id, count] of failed.counts) addCount(next.counts, id, count);
  next.latest = Math.max(next.latest, failed.latest);
  next.pending = [...failed.pending, ...next.pending].slice(0, MAX_PENDING_EVENTS);
}

function addCount(counts: Batch["counts"], id: string, count: Count): void {
  const added = sum(counts.get(id) ?? NONE, count);
  if (added.clicks === 0 && added.botClicks === 0) counts.delete(id);
  else counts.set(id, added);
}

function groupByCount(counts: Batch["counts"]): [Count, string[]][] {
  // Every process locks rows in the same order, which prevents deadlocks.
  const groups = Map.groupBy([...counts.keys()].sort(), (id) => {
    const { clicks, botClicks } = counts.get(id) as Count;
    return `${clicks} ${botClicks}`;
  });
  return [...groups.values()].map((ids) => [counts.get(ids[0] as string) as Count, ids]);
}

/** At most one event per link and second; the first click isn't delayed. Kept clicks are counted when released. */
function createClickCoalescer(release: (event: PendingEvent) => void) {
  const recent = new LRUCache<string, true>({ max: MAX_LINKS, ttl: WINDOW_MS });
  let kept = new Map<string, PendingEvent>();
  let timer: NodeJS.Timeout | undefined;
  let hasEnded = false;

  /** Releases what was kept. Events of links that had another event meanwhile are kept again. */
  function releaseAll() {
    clearTimeout(timer);
    timer = undefined;
    const events = kept;
    kept = new Map();
    for (const event of events.values()) release(event);
  }

  return {
    /** Returns at most one event per link, and keeps the others until their link may have another one. */
    take(events: PendingEvent[]): PendingEvent[] {
      const ready = new Map<string, PendingEvent>();
      for (const event of events) {
        const { id } = event.link;
        const isRecent = recent.has(id) && kept.size < MAX_LINKS && !hasEnded;
        // Kept clicks were counted in their own batch.
        const target = isRecent ? kept : ready;
        const added = isRecent ? { ...event, uncounted: NONE } : event;
        const first = target.get(id);
        target.set(id, first ? merge(first, added) : added);
      }
      for (const id of ready.keys()) recent.set(id, true);
      if (kept.size > 0) timer ??= setTimeout(releaseAll, WINDOW_MS).unref();
      return [...ready.values()];
    },

    /** Releases all events that were kept, and keeps none from now on. */
    end() {
      hasEnded = true;
      releaseAll();
    },
  };
}
