import { hash } from "node:crypto";
import type { Knex } from "knex";
import {
  type Analytics,
  CLICK_LISTS,
  CLICK_PROPERTIES,
  type Click,
  type ClickFilter,
  type ClickList,
  type ClickProperty,
  type ClicksByName,
  isOptional,
} from "../../resources/links/types.ts";
import type { Engine } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { HOST } from "../database/tables/columns.ts";
import { type ClickDetailRow, type ClickSourceRow, HOURS } from "../database/tables/links.ts";

/** For how many days at most clicks can be filtered. */
export const DETAIL_DAYS = 90;
/** The link of the rows that have the sum of all links. */
export const ALL_LINKS = "";
/** The name of all that exceed the number of names in a day. */
export const OTHER = "(other)";

// 96 bits.
const HASH_LENGTH = 16;
/** The number of names to return, most clicks first. */
export const TOP_COUNT = 20;
/** How long the database may take to add clicks up. */
export const READ_MS = 10_000;

/** What clicks have in common. Names are empty if they are unknown. */
export type Source = Omit<ClickSourceRow, "organization_id" | "day">;
/** Clicks of one hour. */
export type DetailRow = Pick<ClickDetailRow, "organization_id" | "link_id" | "source" | "day" | "clicks">;

// Some engines return sums as strings. Without rows, a subquery sums to null.
type Sum = number | string | null;
type TimedClicks = { day: number; bot: number; clicks: Sum } & Record<(typeof HOURS)[number], Sum>;
/** The first and the last one, since 1970-01-01. */
type Days = readonly [from: number, to: number];
/** A filter of clicks, or only of those of people. */
type SourceFilter = ClickFilter & { bot?: 0 };
type SourceClicks = Record<ClickProperty, string> & { sum: Sum };
export type NamedClicks = { name: string; clicks: Sum };

/** Returns the source of a click. */
export function sourceOf({ bot, referrer, country, device, browser, destination, ...click }: Click): Source {
  const names = {
    referrer: referrer ?? "",
    country: country ?? "",
    device: device ?? "",
    browser: browser ?? "",
    operating_system: click.operatingSystem ?? "",
    destination: destination?.slice(0, HOST) ?? "",
    utm_source: click.utmSource ?? "",
    utm_medium: click.utmMedium ?? "",
    utm_campaign: click.utmCampaign ?? "",
  };
  const text = JSON.stringify([bot, ...Object.values(names)]);
  return { source: hash("sha256", text, "base64url").slice(0, HASH_LENGTH), bot: bot ? 1 : 0, ...names };
}

/** Returns the source of the clicks that exceed the number of sources in a day. */
export function otherSource({ bot }: Source): Source {
  const unknown = Object.fromEntries(CLICK_PROPERTIES.map((by) => [by, ""])) as Record<ClickProperty, string>;
  return { ...unknown, referrer: OTHER, bot, source: bot ? "(other bots)" : OTHER };
}

// Keeps the order of the tables: the counts of each source that matches are looked up, which reads no others.
const JOIN: Record<Engine, string> = {
  sqlite: "cross join",
  postgres: "join lateral",
  mysql: "straight_join",
};

/** Creates what adds up the clicks that match a filter. */
export function createClickDetails({ knex, engine, readAside }: Database) {
  /** Queries the sources `s` that match. */
  function sourcesOf(organizationId: string, filter: SourceFilter) {
    const where = Object.entries({ organization_id: organizationId, ...filter });
    const conditions = Object.fromEntries(where.map(([name, value]) => [`s.${name}`, value]));
    return knex.from("click_sources as s").where(conditions) as Knex.QueryBuilder;
  }

  /** Returns the condition of the counts `d` of a source `s`, on one link. */
  const areOf = (link: string | Knex.Raw, days: Days): Knex.Raw =>
    knex.raw(
      `d.organization_id = s.organization_id and d.source = s.source
        and d.link_id = ? and d.day between ? and ?`,
      [link, ...days] as never,
    );

  /** Queries the counts `d` of the sources `s` that match, on one link. */
  function matching(organizationId: string, link: string | Knex.Raw, days: Days, filter: SourceFilter) {
    const counts =
      engine === "postgres"
        ? "(select * from click_details d where ? offset 0) d on true"
        : "click_details d on ?";
    const joined = `${JOIN[engine]} ${counts}`;
    return sourcesOf(organizationId, filter).joinRaw(joined, [areOf(link, days)] as never);
  }

  return {
    matching,

    /** Sums the clicks of one link, or of all links. */
    async read(organizationId: string, linkId: string, days: Days, filter: ClickFilter): Promise<Analytics> {
      const sum = knex("click_details as d").where(areOf(linkId, days)).sum("d.clicks");
      const sources = sourcesOf(organizationId, { ...filter, bot: 0 }).select(...CLICK_PROPERTIES, { sum });
      const times = matching(organizationId, linkId, days, filter)
        .groupBy("d.day", "bot")
        .select("d.day", "bot")
        .sum({ clicks: "d.clicks" });
      const isDay = days[0] === days[1];
      if (isDay) times.sum(Object.fromEntries(HOURS.map((hour) => [hour, hour])));
      const [bySource, byDay] = await Promise.all([
        readAside<SourceClicks>(sources, READ_MS),
        readAside<TimedClicks>(times, READ_MS),
      ]);
      const dayCounts = byDay.map(({ day, bot, clicks }) => ({
        day,
        bot: bot === 1,
        clicks: Number(clicks),
      }));
      return { days: dayCounts, hours: isDay ? byDay.flatMap(hoursOf) : [], ...namesOf(bySource) };
    },

    /** Resolves to the number of sources that match. */
    async countSources(organizationId: string, filter: ClickFilter): Promise<number> {
      const sources = sourcesOf(organizationId, { ...filter, bot: 0 });
      const [row] = await readAside<{ count: Sum }>(sources.count({ count: "*" }), READ_MS);
      return Number(row?.count);
    },

    /** Sums the clicks of people on each of these links. */
    sumByLink(
      organizationId: string,
      linkIds: string[],
      days: Days,
      filter: ClickFilter,
    ): Promise<NamedClicks[]> {
      const counts = matching(organizationId, knex.ref("l.id"), days, { ...filter, bot: 0 });
      const links = knex("links as l").whereIn("l.id", linkIds) as Knex.QueryBuilder;
      // Not grouped: MariaDB would take twice as long.
      return readAside(links.select({ name: "l.id", clicks: counts.sum("d.clicks") }), READ_MS);
    },
  };
}

function hoursOf({ bot, ...sums }: TimedClicks): Analytics["hours"] {
  return HOURS.map((name, hour) => ({ hour, bot: bot === 1, clicks: Number(sums[name]) }));
}

function namesOf(sums: SourceClicks[]): Record<ClickList, ClicksByName[]> {
  const lists = CLICK_PROPERTIES.map((by) => {
    const named = sums.map(({ [by]: name, sum }) => ({ name, clicks: sum }));
    return [CLICK_LISTS[by], topNames(named.filter(({ name }) => name !== "" || !isOptional(by)))];
  });
  return Object.fromEntries(lists);
}

/** Sums clicks by name, and returns the names with the most clicks, none without any. */
export function topNames(counts: NamedClicks[], count = TOP_COUNT): ClicksByName[] {
  const sums = new Map<string, number>();
  for (const { name, clicks } of counts) sums.set(name, (sums.get(name) ?? 0) + Number(clicks));
  return [...sums]
    .filter(([, clicks]) => clicks > 0)
    .map(([name, clicks]) => ({ name: name || null, clicks }))
    .sort((one, other) => other.clicks - one.clicks || ((one.name ?? "") < (other.name ?? "") ? -1 : 1))
    .slice(0, count);
}
