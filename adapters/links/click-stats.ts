import { LRUCache } from "lru-cache";
import type { Click, ResolvedLink } from "../../resources/links/types.ts";
import { type Engine, insertedValue, rowsOfJson } from "../database/engine.ts";
import type { ClickCountRow } from "../database/tables/links.ts";
import { AGENT_SEPARATOR, ALL_LINKS, OTHER } from "./click-analytics.ts";

// More than any campaign has. Headers can be forged, so without a limit visitors could fill the table.
const NAMES_PER_LINK = 100;
const NAMES_PER_ORGANIZATION = 500;
const MAX_LIMITED = 10_000;
const HOUR_MS = 60 * 60 * 1000;
const DAY_HOURS = 24;

type Dimension = ClickCountRow["dimension"];
export type ClickedLink = Pick<ResolvedLink, "id" | "organizationId">;
/** Clicks on one link, in one hour and from one source. `isCounted` if the row of the link includes them. */
export type EqualClicks = { link: ClickedLink; click: Click; clicks: number; isCounted: boolean };

/** Returns the same text for all clicks that differ in nothing that is counted. */
export function sourceOf(click: Click): string {
  const { referrer, country, bot } = click;
  return `${hourOf(click)} ${referrer ?? ""} ${country} ${agentOf(click)} ${bot}`;
}

function hourOf({ clickedAt }: Click): number {
  return Math.floor(clickedAt / HOUR_MS);
}

function agentOf({ device, browser, operatingSystem }: Click): string {
  return [device, browser, operatingSystem].map((name) => name ?? "").join(AGENT_SEPARATOR);
}

/** Returns a function that returns the rows that clicks add to: those of their link, and of its organization. */
export function createStatisticsOf(): (equal: EqualClicks) => ClickCountRow[] {
  const limitNames = createNameLimit();
  return ({ link: { id, organizationId }, click, clicks }) => {
    const day = Math.floor(hourOf(click) / DAY_HOURS);
    const hour = String(hourOf(click) % DAY_HOURS).padStart(2, "0");
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
      ["referrer", limitNames(scope, "referrer", day, click.referrer ?? "", max)],
      ["country", click.country ?? ""],
      ["agent", limitNames(scope, "agent", day, agentOf(click), max)],
    ];
    return [
      ...rowsIn(id, dimensionsOf(id, NAMES_PER_LINK)),
      ...rowsIn(ALL_LINKS, [...dimensionsOf(organizationId, NAMES_PER_ORGANIZATION), ["link", id]]),
    ];
  };
}

/** Adds a row to those that are to be stored. */
export function addStatistic(rows: Map<string, ClickCountRow>, row: ClickCountRow): void {
  const { organization_id, link_id, dimension, day, name, clicks } = row;
  const key = `${organization_id} ${link_id} ${dimension} ${day} ${name}`;
  const existing = rows.get(key);
  if (existing) existing.clicks += clicks;
  else rows.set(key, row);
}

const KEY = {
  organization_id: "text",
  link_id: "text",
  dimension: "text",
  day: "bigint",
  name: "text",
} as const;

export function addStatisticsSql(engine: Engine): string {
  const sum = `click_counts.clicks + ${insertedValue(engine, "clicks")}`;
  const columns = [...Object.keys(KEY), "clicks"].join(", ");
  const conflict =
    engine === "mysql"
      ? `on duplicate key update clicks = ${sum}`
      : `on conflict (${Object.keys(KEY).join(", ")}) do update set clicks = ${sum}`;
  // Without a condition, SQLite would read the following `on` as that of a join.
  return `insert into click_counts (${columns})
    select ${columns} from ${rowsOfJson(engine, { ...KEY, clicks: "bigint" })} where true ${conflict}`;
}

type LimitNames = (scope: string, dimension: Dimension, day: number, name: string, max: number) => string;

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
