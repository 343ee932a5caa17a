import { LRUCache } from "lru-cache";
import type { Click, ResolvedLink } from "../../resources/links/types.ts";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables/links.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";
import { AGENT_SEPARATOR, ALL_LINKS, createClickAnalytics, OTHER } from "./click-analytics.ts";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const NAMES_PER_LINK = 100;
const NAMES_PER_ORGANIZATION = 500;
const MAX_LIMITED = 10_000;
// How many clicks a crash may lose. Long enough to merge the clicks of a link.
const FLUSH_INTERVAL_MS = 2000;
const MAX_ROWS = 500;
const HOUR_MS = 60 * 60 * 1000;
const DAY_HOURS = 24;

type Dimension = ClickCountRow["dimension"];
/** Equal clicks: of one link, hour and source. */
type Equal = Pick<ResolvedLink, "id" | "organizationId"> &
  Pick<Click, "bot"> & { hour: number; referrer: string; country: string; agent: string; clicks: number };
/** Equal clicks are added to their counts when these are stored: most clicks have others like them. */
type Batch = { equals: Map<string, Equal>; counts: Map<string, ClickCountRow> };

export type ClickStats = ReturnType<typeof createClickStats>;

export function createClickStats(database: Database) {
  const limitNames = createNameLimit();
  const addCounts = prepareAddCounts(database);
  const buffer = createWriteBehindBuffer<Batch>({
    gatherMs: FLUSH_INTERVAL_MS,
    empty: () => ({ equals: new Map(), counts: new Map() }),
    store,
    carry,
  });

  async function store({ equals, counts }: Batch) {
    for (const equal of equals.values()) {
      for (const row of countsOf(equal, limitNames)) addCount(counts, row);
    }
    equals.clear();
    // Every process locks rows in the same order, which prevents deadlocks.
    const keys = [...counts.keys()].sort();
    for (let start = 0; start < keys.length; start += MAX_ROWS) {
      const chunk = keys.slice(start, start + MAX_ROWS);
      await addCounts(chunk.map((key) => counts.get(key) as ClickCountRow));
      for (const key of chunk) counts.delete(key);
    }
  }

  return {
    /** Adds equal clicks. They are stored a few seconds later; a crash loses at most the clicks of those seconds. */
    add({ id, organizationId }: Pick<ResolvedLink, "id" | "organizationId">, click: Click, clicks = 1): void {
      const { clickedAt, bot, country } = click;
      const hour = Math.floor(clickedAt / HOUR_MS);
      const referrer = click.referrer ?? "";
      const agent = agentOf(click);
      const { equals } = buffer.next();
      const key = `${id} ${hour} ${referrer} ${country} ${agent} ${bot}`;
      const equal = equals.get(key);
      if (equal) equal.clicks += clicks;
      else
        equals.set(key, {
          id,
          organizationId,
          hour,
          referrer,
          country: country ?? "",
          agent,
          bot,
          clicks,
        });
    },

    ...createClickAnalytics(database, buffer.settled),
    drained: buffer.drained,
  };
}

function agentOf({ device, browser, operatingSystem }: Click): string {
  return [device, browser, operatingSystem].map((name) => name ?? "").join(AGENT_SEPARATOR);
}

type LimitNames = (scope: string, dimension: Dimension, day: number, name: string, max: number) => string;

/** Returns the rows that a click adds to: those of its link, and those of its organization. */
function countsOf(equal: Equal, limitNames: LimitNames): ClickCountRow[] {
  const { id, organizationId, bot, referrer, country, agent, clicks } = equal;
  const day = Math.floor(equal.hour / DAY_HOURS);
  const hour = String(equal.hour % DAY_HOURS).padStart(2, "0");
  const rowsIn = (link_id: string, dimensions: [Dimension, string][]) =>
    dimensions.map(([dimension, name]) => ({
      organization_id: organizationId,
      link_id,
      dimension,
      day,
      name,
      clicks,
    }));
  if (bot) return [...rowsIn(id, [["bots", hour]]), ...rowsIn(ALL_LINKS, [["bots", hour]])];
  const dimensionsOf = (scope: string, max: number): [Dimension, string][] => [
    ["clicks", hour],
    ["referrer", limitNames(scope, "referrer", day, referrer, max)],
    ["country", country],
    ["agent", limitNames(scope, "agent", day, agent, max)],
  ];
  return [
    ...rowsIn(id, dimensionsOf(id, NAMES_PER_LINK)),
    ...rowsIn(ALL_LINKS, [...dimensionsOf(organizationId, NAMES_PER_ORGANIZATION), ["link", id]]),
  ];
}

function addCount(counts: Batch["counts"], row: ClickCountRow): void {
  const { organization_id, link_id, dimension, day, name, clicks } = row;
  const key = `${organization_id} ${link_id} ${dimension} ${day} ${name}`;
  const existing = counts.get(key);
  if (existing) existing.clicks += clicks;
  else counts.set(key, row);
}

function carry(failed: Batch, next: Batch): void {
  for (const row of failed.counts.values()) addCount(next.counts, row);
}

const COLUMNS = ["organization_id", "link_id", "dimension", "day", "name", "clicks"] as const;

/** Adds rows with one parameter, their JSON: a parameter for each value would take longer to pass than to store. */
function prepareAddCounts({ engine, prepare }: Database): (rows: ClickCountRow[]) => Promise<void> {
  const add = prepare<unknown, "rows">((q, { rows }) => q.raw(addCountsSql(engine), [rows]));
  return async (rows) => void (await add({ rows: JSON.stringify(rows) }));
}

function addCountsSql(engine: Engine): string {
  const sum = `click_counts.clicks + ${insertedValue(engine, "clicks")}`;
  const columns = COLUMNS.join(", ");
  const conflict =
    engine === "mysql"
      ? `on duplicate key update clicks = ${sum}`
      : `on conflict (${COLUMNS.slice(0, -1).join(", ")}) do update set clicks = ${sum}`;
  return `insert into click_counts (${columns}) ${SELECT_ROWS[engine]} ${conflict}`;
}

const SELECT_ROWS: Record<Engine, string> = {
  // Without a condition, SQLite would read the following `on` as that of a join.
  sqlite: `select ${COLUMNS.map((column) => `value ->> '${column}'`).join(", ")} from json_each(?) where true`,
  postgres: `select ${COLUMNS.join(", ")} from json_populate_recordset(null::click_counts, ?)`,
  mysql: `select ${COLUMNS.map((column) => `added.${column}`).join(", ")} from json_table(?, '$[*]' columns (
    ${COLUMNS.map((column) => `${column} ${isNumber(column) ? "bigint" : "varchar(255)"} path '$.${column}'`).join(", ")}
  )) as added`,
};

function isNumber(column: (typeof COLUMNS)[number]): boolean {
  return column === "day" || column === "clicks";
}

/** Returns the name, or `OTHER` once a scope has had the maximum number of different names on that day. */
function createNameLimit(): LimitNames {
  let currentDay = 0;
  const namesByScope = new LRUCache<string, Set<string>>({ max: MAX_LIMITED });
  return (scope, dimension, day, name, max) => {
    if (name === "") return name;
    if (day !== currentDay) namesByScope.clear();
    currentDay = day;
    const key = `${scope} ${dimension}`;
    const names = namesByScope.get(key) ?? new Set();
    if (names.has(name)) return name;
    if (names.size >= max) return OTHER;
    names.add(name);
    namesByScope.set(key, names);
    return name;
  };
}
