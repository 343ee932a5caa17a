import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Click, ResolvedLink } from "../../resources/links/types.ts";
import { containsText } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { withRetries } from "../database/retry.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import { type TraceColumn, withoutTrace } from "../events/event-trace.ts";
import { addDeliveries, eventRow, type Outbox } from "../events/outbox.ts";
import { createClickCoalescer } from "./click-coalescer.ts";

/** Counts clicks in the background of the redirects that cause them. */
export type ClickCounter = {
  /** Counts one click. It is stored with others after a short delay; a crash loses at most the clicks of that delay. */
  count(link: ResolvedLink, click: Click): void;
  /** Records the webhook event of a click that is already counted. */
  recordEvent(link: ResolvedLink, click: Click): void;
  /** Resolves when the clicks so far are stored, or failed to be: the database is then down, as a read will find out. */
  settled(): Promise<void>;
  /** Resolves when nothing is left to store, after as many attempts as that takes. */
  drained(): Promise<void>;
};

// How many clicks a crash may lose, and how long other processes may not see a click.
const FLUSH_INTERVAL_MS = 100;
// The maximum number of links, or events, in one statement.
const MAX_ROWS = 500;
// Enough for a hundred thousand events per second. Limits memory while storing keeps failing.
const MAX_PENDING_EVENTS = 10_000;
const VISITOR: Actor = { id: "system" };

/** An event of one or more clicks on a link, described by the first one. `uncounted` of them are not yet counted. */
type PendingEvent = {
  link: ResolvedLink;
  click: Click;
  count: number;
  uncounted: number;
  trace: TraceColumn;
};
type Batch = { counts: Map<string, number>; latest: number; pending: PendingEvent[] };

/** Creates the click counter of one process. */
export function createClickCounter(database: Database, outbox: Outbox): ClickCounter {
  const { knex, engine, transaction } = database;
  const { trace } = outbox;
  const buffer = createWriteBehindBuffer<Batch>({ gatherMs: FLUSH_INTERVAL_MS, empty, store, carry });
  const coalescer = createClickCoalescer<PendingEvent>({ merge, release: add });

  function add(event: PendingEvent) {
    const batch = buffer.next();
    const { link, click, uncounted } = event;
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

  /** Finds the organizations that have a webhook for clicks. */
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

  /** Stores up to `MAX_ROWS` events and their counts in one transaction. */
  async function storeEvents(batch: Batch) {
    const pending = batch.pending.slice(0, MAX_ROWS);
    const counts = new Map<string, number>();
    for (const { link, uncounted } of pending) addCount(counts, link.id, uncounted);
    const events = pending.map(toEvent);
    const ids = events.map(({ id }) => id);
    await transaction(async (trx) => {
      for (const [clicks, links] of groupByCount(counts)) await addClicks(trx, links, clicks, batch.latest);
      await trx("events").insert(events);
      await addDeliveries(trx, engine, ids);
    });
    outbox.notify();
    batch.pending = batch.pending.slice(MAX_ROWS);
    for (const [id, clicks] of counts) addCount(batch.counts, id, -clicks);
  }

  /** Updates links with the same count in one statement, since most have one click. Each group is stored once or not at all. */
  async function storeCounts({ counts, latest }: Batch) {
    for (const [clicks, ids] of groupByCount(counts)) {
      for (let start = 0; start < ids.length; start += MAX_ROWS) {
        const chunk = ids.slice(start, start + MAX_ROWS);
        await withRetries(() => addClicks(knex, chunk, clicks, latest), false);
        for (const id of chunk) counts.delete(id);
      }
    }
  }

  return {
    count: (link, click) => add({ link, click, count: 1, uncounted: 1, trace: trace.of("link.clicked") }),
    recordEvent: (link, click) =>
      add({ link, click, count: 1, uncounted: 0, trace: trace.of("link.clicked") }),
    settled: buffer.settled,
    async drained() {
      coalescer.end();
      await buffer.drained();
    },
  };
}

async function addClicks(q: Knex, ids: string[], clicks: number, latest: number): Promise<void> {
  const counted = { clicks: q.raw("clicks + ?", [clicks]), last_clicked_at: latest };
  await q("links").whereIn("id", ids).update(counted);
}

/** Merges two events of a link. */
function merge(first: PendingEvent, later: PendingEvent): PendingEvent {
  const uncounted = first.uncounted + later.uncounted;
  return { ...first, count: first.count + later.count, uncounted, trace: withoutTrace(first.trace) };
}

function toEvent({ link, click, count, trace }: PendingEvent) {
  const { id, organizationId, slug, url } = link;
  const { clickedAt, referrer, country, bot } = click;
  const clicked_at = new Date(clickedAt).toISOString();
  const data = { link_id: id, slug, url, clicked_at, count, referrer, country, bot };
  return eventRow(VISITOR, { organizationId, type: "link.clicked", subject: id, data }, trace);
}

function empty(): Batch {
  return { counts: new Map(), latest: 0, pending: [] };
}

function carry(failed: Batch, next: Batch): void {
  for (const [id, clicks] of failed.counts) addCount(next.counts, id, clicks);
  next.latest = Math.max(next.latest, failed.latest);
  next.pending = [...failed.pending, ...next.pending].slice(0, MAX_PENDING_EVENTS);
}

function addCount(counts: Map<string, number>, id: string, clicks: number): void {
  const sum = (counts.get(id) ?? 0) + clicks;
  if (sum === 0) counts.delete(id);
  else counts.set(id, sum);
}

function groupByCount(counts: Map<string, number>): Map<number, string[]> {
  const groups = new Map<number, string[]>();
  // Every process locks rows in the same order, which prevents deadlocks.
  for (const id of [...counts.keys()].sort()) {
    const clicks = counts.get(id) as number;
    const group = groups.get(clicks);
    if (group) group.push(id);
    else groups.set(clicks, [id]);
  }
  return groups;
}
