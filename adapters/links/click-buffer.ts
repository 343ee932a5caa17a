import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import { SYSTEM } from "../../resources/events/types.ts";
import { type Click, isOptional, type ResolvedLink } from "../../resources/links/types.ts";
import { toLocalTime } from "../../resources/time-zone.ts";
import { containsText, type Engine, rowsOfJson } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow, ClickSourceRow } from "../database/tables/links.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import { addDeliveries, eventRow, type Outbox, type TraceColumn, withoutTrace } from "../events/outbox.ts";
import { AGENT_SEPARATOR, NAMED } from "./click-analytics.ts";
import { ALL_LINKS, type DetailRow, OTHER, otherSource, type Source, sourceOf } from "./click-details.ts";
import { addDetailsSql, addSourcesSql, addStatisticsSql, LOCAL_COMMIT } from "./click-upserts.ts";

// How many clicks a crash may lose, and how long other processes may not see a click, unless the processor or database
// is busy.
const FLUSH_INTERVAL_MS = 100;
const MAX_ROWS = 500;
// The smallest unit in which integrators would look at clicks. A person doesn't notice the delay.
const WINDOW_MS = 1000;
// Limits memory. With more links clicked in a second, some have more than one event.
const MAX_LINKS = 10_000;
// Different clicks that wait to be stored, which take about 500 bytes each. Limits memory while storing keeps failing.
const MAX_CLICKS = 50_000;
// The statistics of more clicks are stored in several runs, so that reads of links don't wait for all of them.
const CLICKS_PER_RUN = 2000;
// Those of this second, and those of a hundred thousand clicks per second. Limits memory while storing keeps failing.
const MAX_EVENTS = 2 * MAX_LINKS;

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const NAMES_PER_LINK = 100;
const NAMES_PER_ORGANIZATION = 500;
// Of clicks with everything in common but the hour.
const SOURCES_PER_LINK = 200;
const SOURCES_PER_ORGANIZATION = 1000;
const MAX_LIMITED = 10_000;
const MAX_SOURCES = 50_000;
const HOUR_MS = 60 * 60 * 1000;
// Offsets of time zones are multiples.
const QUARTER_MS = HOUR_MS / 4;
const DAY_HOURS = 24;

type Dimension = ClickCountRow["dimension"];
type ClickedLink = Pick<ResolvedLink, "id" | "organizationId" | "timeZone">;
/** Clicks on one link, in a quarter of an hour and from one source. `isCounted` if the row of the link includes them. */
type EqualClicks = { link: ClickedLink; click: Click; clicks: number; isCounted: boolean };

type LinkCount = { id: string; people: number; bots: number; latest: number };
/** An event of one or more clicks on a link, described by the first one. */
type PendingEvent = { link: ResolvedLink; click: Click; trace: TraceColumn } & Record<Counter, number>;
type Counter = "clicks" | "bot_clicks";

const COUNT_BELOW_LIMIT = `update links
  set clicks = clicks + :clicks, bot_clicks = bot_clicks + :bot_clicks, last_clicked_at = :clickedAt
  where id = :id and deleted_at is null and clicks + bot_clicks < max_clicks`;

export type ClickBuffer = ReturnType<typeof createClickBuffer>;

/** Collects the clicks of one process: the counts of their links, their statistics and their events. */
export function createClickBuffer({ knex, engine, prepare, transaction }: Database, outbox: Outbox) {
  const buffer = createWriteBehindBuffer(store, FLUSH_INTERVAL_MS);
  const clicks = new Map<string, EqualClicks>();
  let dropped = 0;
  // What is being stored, or could not be stored.
  const uncounted: EqualClicks[] = [];
  const linkCounts = new Map<string, LinkCount>();
  const statistics = new Map<string, ClickCountRow>();
  const sources = new Map<string, ClickSourceRow>();
  // By hour, each of which has its column.
  const details = Array.from({ length: DAY_HOURS }, () => new Map<string, DetailRow>());
  const ready = new Map<string, PendingEvent>();
  // Events that are not ready: at most one per link and second. The first click isn't delayed.
  const pending = new Map<string, PendingEvent>();
  const recent = new LRUCache<string, true>({ max: MAX_LINKS, ttl: WINDOW_MS });
  let release: NodeJS.Timeout | undefined;
  let hasEnded = false;

  const isLocal = engine === "postgres";
  const waiting = () => clicks.size + uncounted.length;
  const statisticsOf = createStatisticsOf();
  const addLinkCounts = prepare<unknown, "rows">(addLinkCountsSql(engine), { isLocal });
  const addStatistics = prepare<unknown, "rows">(addStatisticsSql(engine), { isLocal });
  const addSources = prepare<unknown, "rows">(addSourcesSql(engine), { isLocal });
  const addDetails = details.map((_, hour) =>
    prepare<unknown, "rows">(addDetailsSql(engine, hour), { isLocal }),
  );
  const countBelowLimit = prepare<number, "id" | "clickedAt" | Counter>(COUNT_BELOW_LIMIT);

  /** Adds clicks that are equal to others to them, because most are, and their rows take longer. */
  function addClicks(link: ClickedLink, click: Click, count: number, isCounted: boolean): void {
    const key = `${link.id} ${textOf(click)} ${isCounted}`;
    const equal = clicks.get(key);
    clicks.set(key, { link, click, clicks: count + (equal?.clicks ?? 0), isCounted });
    buffer.schedule();
  }

  function addEvent(target: typeof pending, event: PendingEvent): void {
    const { id } = event.link;
    const first = target.get(id);
    if (first) {
      first.clicks += event.clicks;
      first.bot_clicks += event.bot_clicks;
      first.trace = withoutTrace(first.trace);
    } else if (target.size < MAX_EVENTS) target.set(id, event);
  }

  async function store() {
    const organizations = new Set([...pending.values()].map(({ link }) => link.organizationId));
    const subscribed = await findSubscribed([...organizations]);
    for (const [id, event] of pending) {
      const { organizationId } = event.link;
      const isRecent = subscribed.has(organizationId) && recent.has(id) && !hasEnded;
      // Links may have been clicked meanwhile.
      if (isRecent || !organizations.has(organizationId)) continue;
      pending.delete(id);
      if (!subscribed.has(organizationId)) continue;
      recent.set(id, true);
      addEvent(ready, event);
    }
    if (pending.size > 0) release ??= setTimeout(releaseEvents, WINDOW_MS).unref();
    for (const equal of clicks.values()) {
      if (!equal.isCounted) addLinkCount(linkCounts, equal);
      uncounted.push(equal);
    }
    clicks.clear();
    await storeEvents();
    await storeRows(linkCounts, addLinkCounts);
    for (const equal of uncounted.splice(0, CLICKS_PER_RUN)) {
      const { counts, hour, ofHour, newSources } = statisticsOf(equal);
      for (const row of newSources) sources.set(`${row.organization_id} ${row.source}`, row);
      for (const row of counts) addStatistic(statistics, row, `${row.dimension} ${row.day} ${row.name}`);
      const rows = details[hour] as (typeof details)[number];
      for (const row of ofHour) addStatistic(rows, row, `${row.source} ${row.day}`);
    }
    // Rows of a table are locked in the same order, so they can't deadlock. On SQLite, one commit stores them.
    const stored = await Promise.allSettled([
      storeRows(statistics, addStatistics),
      storeRows(sources, addSources),
      ...details.map((rows, hour) => storeRows(rows, addDetails[hour] as typeof addStatistics)),
    ]);
    const failed = stored.find(({ status }) => status === "rejected");
    if (failed) throw (failed as PromiseRejectedResult).reason;
    if (uncounted.length > 0) buffer.schedule(0);
  }

  async function findSubscribed(organizations: string[]): Promise<Set<string>> {
    if (organizations.length === 0) return new Set();
    const subscribed = await knex("webhooks")
      .whereIn("organization_id", organizations)
      .where({ enabled: true })
      .whereRaw(containsText(engine), ["events", "link.clicked"])
      .pluck("organization_id");
    return new Set(subscribed);
  }

  /** Stores events together with the counts of their links: after a crash, neither is without the other. */
  async function storeEvents() {
    for (const ids of chunksOf([...ready.keys()].sort())) {
      const rows = JSON.stringify(ids.flatMap((id) => linkCounts.get(id) ?? []));
      const events = ids.map((id) => toEvent(ready.get(id) as PendingEvent));
      const eventIds = events.map(({ id }) => id);
      const add = async (trx: Knex.Transaction) => {
        await trx.raw(addLinkCountsSql(engine), { rows });
        await trx("events").insert(events);
        await addDeliveries(trx, engine, eventIds);
      };
      await transaction(add, { isDurable: !isLocal });
      outbox.notify();
      for (const id of ids) {
        linkCounts.delete(id);
        ready.delete(id);
      }
    }
  }

  function releaseEvents() {
    release = undefined;
    buffer.schedule();
  }

  return {
    /**
     * Resolves to false if `max_clicks` is reached, which is exact under concurrency. Without this limit, the click is
     * stored after a short delay; a crash loses at most the clicks of that delay.
     */
    async count(link: ResolvedLink, click: Click): Promise<boolean> {
      const isLimited = link.maxClicks !== null;
      const count = { clicks: click.bot ? 0 : 1, bot_clicks: click.bot ? 1 : 0 };
      const { clickedAt } = click;
      if (isLimited && !(await countBelowLimit({ id: link.id, clickedAt, ...count }))) return false;
      if (waiting() >= MAX_CLICKS) {
        dropped++;
        return true;
      }
      addEvent(pending, { link, click, ...count, trace: outbox.trace.of("link.clicked") });
      addClicks(link, click, 1, isLimited);
      return true;
    },
    /** Adds equal clicks without an event, by days in UTC. */
    addPast: (link: Omit<ClickedLink, "timeZone">, click: Click, count: number) =>
      addClicks({ ...link, timeZone: "UTC" }, click, count, false),
    settled: buffer.settled,
    /** As `settled`, for the statistics as well. */
    async settledStatistics(): Promise<void> {
      let before: number;
      do {
        before = waiting();
        await buffer.settled();
      } while (uncounted.length > 0 && waiting() < before);
    },
    /** How many clicks were not counted, because too many waited for the database. */
    dropped: () => dropped,
    /** Resolves when nothing is left to store, after as many attempts as that takes. */
    async drained() {
      hasEnded = true;
      clearTimeout(release);
      if (pending.size > 0) buffer.schedule();
      await buffer.drained();
    },
  };
}

/** Stores rows in batches. Each is stored once or not at all, and remains in `rows` until then. */
async function storeRows<Row>(
  rows: Map<string, Row>,
  add: (values: { rows: string }) => Promise<unknown>,
): Promise<void> {
  // Every process locks rows in the same order, which prevents deadlocks.
  for (const keys of chunksOf([...rows.keys()].sort())) {
    await add({ rows: JSON.stringify(keys.map((key) => rows.get(key))) });
    for (const key of keys) rows.delete(key);
  }
}

function chunksOf<T>(all: T[]): T[][] {
  const count = Math.ceil(all.length / MAX_ROWS);
  return Array.from({ length: count }, (_, index) => all.slice(index * MAX_ROWS, (index + 1) * MAX_ROWS));
}

function addLinkCount(counts: Map<string, LinkCount>, { link: { id }, click, clicks }: EqualClicks): void {
  const count = counts.get(id) ?? { id, people: 0, bots: 0, latest: 0 };
  count[click.bot ? "bots" : "people"] += clicks;
  count.latest = Math.max(count.latest, click.clickedAt);
  counts.set(id, count);
}

function addLinkCountsSql(engine: Engine): string {
  const sums = "clicks = clicks + people, bot_clicks = bot_clicks + bots, last_clicked_at = latest";
  const added = rowsOfJson(engine, { id: "text", people: "bigint", bots: "bigint", latest: "bigint" });
  if (engine === "mysql") return `update ${added} straight_join links on links.id = added.id set ${sums}`;
  // PostgreSQL locks the rows of a join in any order, except with a subquery that locks them first. The condition is always
  // true, but makes the planner expect few rows. Otherwise it may scan all links.
  if (engine === "sqlite") return `update links set ${sums} from ${added} where links.id = added.id`;
  const locked = `(select added.* from ${added} join links using (id)
    where coalesce(id, '') = id order by id for no key update of links) as added`;
  return `update links set ${sums} from ${locked} where links.id = added.id and ${LOCAL_COMMIT}`;
}

function toEvent({ link, click, clicks, bot_clicks, trace }: PendingEvent) {
  const { id, organizationId, domain, slug } = link;
  const { clickedAt, destination, referrer, country, device, browser, operatingSystem } = click;
  const clicked_at = new Date(clickedAt).toISOString();
  const source = { referrer, country, device, browser, operating_system: operatingSystem };
  const url = destination ?? link.url;
  const data = {
    link_id: id,
    ...(domain !== null && { domain }),
    slug,
    url,
    clicked_at,
    clicks,
    bot_clicks,
    ...source,
  };
  return eventRow(SYSTEM, { organizationId, type: "link.clicked", subject: id, data }, trace);
}

/** Returns the same text for all clicks that differ in nothing that is counted. No name has the character that joins them. */
function textOf(click: Click): string {
  const { referrer, country, bot, destination, utmSource, utmMedium, utmCampaign } = click;
  const utm = `${utmSource ?? ""}\0${utmMedium ?? ""}\0${utmCampaign ?? ""}`;
  return `${Math.floor(click.clickedAt / QUARTER_MS)} ${referrer ?? ""} ${country} ${agentOf(click)} ${bot} ${destination ?? ""} ${utm}`;
}

function agentOf({ device, browser, operatingSystem }: Click): string {
  return [device, browser, operatingSystem].map((name) => name ?? "").join(AGENT_SEPARATOR);
}

type Statistics = {
  counts: ClickCountRow[];
  hour: number;
  ofHour: DetailRow[];
  newSources: ClickSourceRow[];
};

/** Returns a function that returns the rows that clicks add to: those of their link, and of its organization. */
function createStatisticsOf(): (equal: EqualClicks) => Statistics {
  const limitNames = createNameLimit();
  // Those of which this process has stored the names on a day.
  const known = new LRUCache<string, true>({ max: MAX_SOURCES });

  function detailsOf({ link: { id, organizationId }, clicks }: EqualClicks, source: Source, day: number) {
    const newSources: ClickSourceRow[] = [];
    const limit = (full: Source, scope: string, max: number): Source =>
      limitNames(scope, "source", day, full.source, max) === OTHER ? otherSource(full) : full;
    const rowOf = (link_id: string, limited: Source): DetailRow => {
      const key = `${organizationId} ${limited.source} ${day}`;
      if (!known.has(key)) newSources.push({ ...limited, organization_id: organizationId, day });
      known.set(key, true);
      return { organization_id: organizationId, link_id, source: limited.source, day, clicks };
    };
    // A link has no sources that its organization doesn't have, whose number limits the work of filters.
    const ofAll = limit(source, organizationId, SOURCES_PER_ORGANIZATION);
    const ofLink = limit(ofAll, id, SOURCES_PER_LINK);
    return { ofHour: [rowOf(id, ofLink), rowOf(ALL_LINKS, ofAll)], newSources };
  }

  function countsOf(
    { link: { id, organizationId }, click, clicks }: EqualClicks,
    source: Source,
    day: number,
    hour: string,
  ): ClickCountRow[] {
    const rowsIn = (link_id: string, dimensions: [Dimension, string][]) =>
      dimensions.map(([dimension, name]) => ({
        organization_id: organizationId,
        link_id,
        dimension,
        day,
        name,
        clicks,
      }));
    if (click.bot) return [...rowsIn(id, [["bots", hour]]), ...rowsIn(ALL_LINKS, [["bots", hour]])];
    const dimensionsOf = (scope: string, max: number): [Dimension, string][] => [
      ["clicks", hour],
      ["agent", limitNames(scope, "agent", day, agentOf(click), max)],
      ...NAMED.filter((by) => source[by] !== "" || !isOptional(by)).map((by): [Dimension, string] => [
        by,
        limitNames(scope, by, day, source[by], max),
      ]),
    ];
    return [
      ...rowsIn(id, dimensionsOf(id, NAMES_PER_LINK)),
      ...rowsIn(ALL_LINKS, [...dimensionsOf(organizationId, NAMES_PER_ORGANIZATION), ["link", id]]),
    ];
  }

  return (equal) => {
    const { link, click } = equal;
    const hours = Math.floor(toLocalTime(click.clickedAt, link.timeZone) / HOUR_MS);
    const [day, hour] = [Math.floor(hours / DAY_HOURS), hours % DAY_HOURS];
    const source = sourceOf(click);
    const counts = countsOf(equal, source, day, String(hour).padStart(2, "0"));
    return { counts, hour, ...detailsOf(equal, source, day) };
  };
}

/** Adds a row to those that are to be stored. */
function addStatistic<Row extends Pick<ClickCountRow, "organization_id" | "link_id" | "clicks">>(
  rows: Map<string, Row>,
  row: Row,
  keyOfLink: string,
): void {
  const key = `${row.organization_id} ${row.link_id} ${keyOfLink}`;
  const existing = rows.get(key);
  if (existing) existing.clicks += row.clicks;
  else rows.set(key, row);
}

type LimitNames = (
  scope: string,
  dimension: Dimension | "source",
  day: number,
  name: string,
  max: number,
) => string;

/** Returns the name, or `OTHER` once a scope has had the maximum number of different names on that day. */
function createNameLimit(): LimitNames {
  const namesByScope = new LRUCache<string, Set<string>>({ max: MAX_LIMITED });
  return (scope, dimension, day, name, max) => {
    if (name === "") return name;
    // Organizations don't begin a day at the same time.
    const key = `${scope} ${dimension} ${day}`;
    const names = namesByScope.get(key) ?? new Set();
    if (names.has(name)) return name;
    if (names.size >= max) return OTHER;
    names.add(name);
    namesByScope.set(key, names);
    return name;
  };
}
