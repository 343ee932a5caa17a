import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { Analytics, Click, ClicksByName, Device, ResolvedLink } from "../../resources/links/types.ts";
import { type Engine, insertedValue } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables.ts";
import { createWriteBehindBuffer } from "../database/write-behind.ts";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const NAMES_PER_LINK = 100;
const NAMES_PER_ORGANIZATION = 500;
const MAX_LIMITED = 10_000;
const OTHER = "(other)";
// How many clicks a crash may lose. Long enough to merge the clicks of a link.
const FLUSH_INTERVAL_MS = 2000;
const MAX_ROWS = 500;
// The number of names to return, most clicks first.
const TOP_COUNT = 20;
// How long the database may take to add clicks up.
const READ_MS = 10_000;
const HOUR_MS = 60 * 60 * 1000;
const DAY_HOURS = 24;
// Of the device, the browser and the operating system, none of whose names contains it.
const SEPARATOR = "/";
// The rows of the sum of all links.
const ALL_LINKS = "";

type Dimension = ClickCountRow["dimension"];
/** Equal clicks: of one link, hour and source. */
type Equal = Pick<ResolvedLink, "id" | "organizationId"> &
  Pick<Click, "bot"> & { hour: number; referrer: string; country: string; agent: string; clicks: number };
/** Equal clicks are added to their counts when these are stored: most clicks have others like them. */
type Batch = { equals: Map<string, Equal>; counts: Map<string, ClickCountRow> };
// Some engines return sums as strings. The name is empty if it is unknown.
type DailyClicks = { dimension: Dimension; day: number; name?: string; clicks: number | string };
type NamedClicks = { name: string; clicks: number | string };

export type ClickStats = ReturnType<typeof createClickStats>;

export function createClickStats(database: Database) {
  const { knex, readAside } = database;
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

  /** Sums the clicks by name. */
  const byName = (rows: Knex.QueryBuilder, dimension: Dimension) =>
    rows.where({ dimension }).groupBy("name").select("name").sum({ clicks: "clicks" });
  const readTop = (rows: Knex.QueryBuilder, dimension: Dimension, count = TOP_COUNT) => {
    const query = byName(rows, dimension)
      .orderBy([{ column: "clicks", order: "desc" }, "name"])
      .limit(count);
    return readAside<NamedClicks>(query, READ_MS);
  };

  return {
    /** Adds one click. It is stored a few seconds later; a crash loses at most the clicks of those seconds. */
    add({ id, organizationId }: ResolvedLink, click: Click): void {
      const { clickedAt, bot, country } = click;
      const hour = Math.floor(clickedAt / HOUR_MS);
      const referrer = click.referrer ?? "";
      const agent = agentOf(click);
      const { equals } = buffer.next();
      const key = `${id} ${hour} ${referrer} ${country} ${agent} ${bot}`;
      const equal = equals.get(key);
      if (equal) equal.clicks++;
      else
        equals.set(key, {
          id,
          organizationId,
          hour,
          referrer,
          country: country ?? "",
          agent,
          bot,
          clicks: 1,
        });
    },

    /** Sums the clicks of one link of the organization, or of all its links. Both ends are inclusive. */
    async read(
      organizationId: string,
      linkId: string | undefined,
      from: number,
      to: number,
    ): Promise<Analytics> {
      await buffer.settled();
      const rows = () => rowsOf(knex, organizationId, linkId ?? ALL_LINKS, from, to);
      const columns = from === to ? ["dimension", "day", "name"] : ["dimension", "day"];
      const byTime = rows()
        .whereIn("dimension", ["clicks", "bots"])
        .groupBy(columns)
        .select(columns)
        .sum({ clicks: "clicks" });
      const [times, referrers, countries, agents] = await Promise.all([
        readAside<DailyClicks>(byTime, READ_MS),
        readTop(rows(), "referrer"),
        readTop(rows(), "country"),
        readAside<NamedClicks>(byName(rows(), "agent"), READ_MS),
      ]);
      return {
        days: sumDays(times),
        hours: times.flatMap(toHours),
        referrers: referrers.map(toNamed),
        countries: countries.map(toNamed),
        devices: topParts(agents, 0) as ClicksByName<Device>[],
        browsers: topParts(agents, 1),
        operatingSystems: topParts(agents, 2),
      };
    },

    /** Returns the IDs of the links with the most clicks, with these. */
    async topLinks(organizationId: string, from: number, to: number, count: number) {
      await buffer.settled();
      const top = await readTop(rowsOf(knex, organizationId, ALL_LINKS, from, to), "link", count);
      return top.map(({ name, clicks }) => ({ id: name, clicks: Number(clicks) }));
    },

    drained: buffer.drained,
  };
}

function rowsOf(knex: Knex, organizationId: string, linkId: string, from: number, to: number) {
  return knex("click_counts")
    .where({ organization_id: organizationId, link_id: linkId })
    .whereBetween("day", [from, to]) as Knex.QueryBuilder;
}

function agentOf({ device, browser, operatingSystem }: Click): string {
  return [device, browser, operatingSystem].map((name) => name ?? "").join(SEPARATOR);
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

function sumDays(times: DailyClicks[]): Analytics["days"] {
  const groups = Map.groupBy(times, ({ dimension, day }) => `${dimension} ${day}`);
  return [...groups.values()].map((rows) => {
    const [{ dimension, day }] = rows as [DailyClicks];
    return { day, bot: dimension === "bots", clicks: rows.reduce((sum, row) => sum + Number(row.clicks), 0) };
  });
}

function toHours({ dimension, name, clicks }: DailyClicks): Analytics["hours"] {
  if (!name) return [];
  return [{ hour: Number(name), bot: dimension === "bots", clicks: Number(clicks) }];
}

function toNamed({ name, clicks }: NamedClicks): ClicksByName {
  return { name: name || null, clicks: Number(clicks) };
}

/** Sums clicks by one part of the user agent. */
function topParts(agents: NamedClicks[], part: number): ClicksByName[] {
  const sums = new Map<string, number>();
  for (const { name, clicks } of agents) {
    const key = name.split(SEPARATOR)[part] ?? "";
    sums.set(key, (sums.get(key) ?? 0) + Number(clicks));
  }
  return [...sums]
    .map(([name, clicks]) => toNamed({ name: name === OTHER ? "" : name, clicks }))
    .sort((one, other) => other.clicks - one.clicks || ((one.name ?? "") < (other.name ?? "") ? -1 : 1))
    .slice(0, TOP_COUNT);
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
