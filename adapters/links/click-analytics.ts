import type { Knex } from "knex";
import { isFiltered } from "../../resources/links/analytics.ts";
import {
  type Analytics,
  CLICK_LISTS,
  type ClicksByName,
  type LinkStore,
} from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables/links.ts";
import {
  ALL_LINKS,
  createClickDetails,
  type NamedClicks,
  OTHER,
  READ_MS,
  TOP_COUNT,
  topNames,
} from "./click-details.ts";

/** Separates the device, the browser and the operating system, none of whose names contains it. */
export const AGENT_SEPARATOR = "/";
// The clicks that match a filter are added up for as many pairs of a link and a source, of the links with the most clicks:
// to do so for all links would take seconds.
const PAIRS = 400;
const CANDIDATES = { min: 12, max: 1000 };

/** What rows are counted by beside the user agent. */
export const NAMED = [
  "referrer",
  "country",
  "destination",
  "utm_source",
  "utm_medium",
  "utm_campaign",
] as const;
type Range = Parameters<LinkStore["analytics"]>;
type Named = (typeof NAMED)[number];
type Dimension = ClickCountRow["dimension"];
// Some engines return sums as strings. The name is empty if it is unknown.
type TimedClicks = { dimension: Dimension; day: number; name?: string; clicks: number | string };

/** Creates what adds up the counts of clicks. `settled` resolves once the clicks so far are stored. */
export function createClickAnalytics(database: Database, settled: () => Promise<void>) {
  const { knex, engine, readAside } = database;
  const details = createClickDetails(database);
  /** Queries the counts of some links. Both ends are inclusive. */
  const countsOf = (organizationId: string, linkIds: string[], from: number, to: number) =>
    knex("click_counts")
      .where({ organization_id: organizationId })
      .whereIn("link_id", linkIds)
      .whereBetween("day", [from, to]) as Knex.QueryBuilder;

  const sumBy = (columns: string[], counts: Knex.QueryBuilder) =>
    counts.groupBy(columns).select(columns).sum({ clicks: "clicks" });

  const readTop = (dimension: Dimension, counts: Knex.QueryBuilder, count = TOP_COUNT) => {
    const named = counts.where({ dimension });
    // MariaDB groups by numbers in a third of the time that long names take. 64 bits tell the names apart.
    const sums: Knex.QueryBuilder =
      engine === "mysql"
        ? named
            .groupByRaw("crc32(name), crc32(reverse(name))")
            .min({ name: "name" })
            .sum({ clicks: "clicks" })
        : sumBy(["name"], named);
    const query = sums.orderBy([{ column: "clicks", order: "desc" }, "name"]).limit(count);
    return readAside<NamedClicks>(query, READ_MS);
  };

  return {
    /** Sums the clicks of one link of the organization, or of all its links. */
    async read(...[organizationId, linkId, from, to, filter = {}]: Range): Promise<Analytics> {
      await settled();
      if (isFiltered(filter)) return details.read(organizationId, linkId ?? ALL_LINKS, [from, to], filter);
      const counts = () => countsOf(organizationId, [linkId ?? ALL_LINKS], from, to);
      const columns = from === to ? ["dimension", "day", "name"] : ["dimension", "day"];
      const byTime = sumBy(columns, counts().whereIn("dimension", ["clicks", "bots"]));
      const byAgent = sumBy(["name"], counts().where({ dimension: "agent" }));
      const [times, agents, ...tops] = await Promise.all([
        readAside<TimedClicks>(byTime, READ_MS),
        readAside<NamedClicks>(byAgent, READ_MS),
        ...NAMED.map((dimension) => readTop(dimension, counts())),
      ]);
      const lists = NAMED.map((by, index) => [CLICK_LISTS[by], tops[index]?.map(toNamed)]);
      return {
        days: sumDays(times),
        hours: times.flatMap(toHours),
        ...(Object.fromEntries(lists) as Record<(typeof CLICK_LISTS)[Named], ClicksByName[]>),
        devices: topParts(agents, 0),
        browsers: topParts(agents, 1),
        operating_systems: topParts(agents, 2),
      };
    },

    /** As `read`, but sums only the clicks of people. */
    async count(...[organizationId, linkId, from, to, filter = {}]: Range): Promise<number> {
      await settled();
      const link = linkId ?? ALL_LINKS;
      const counts = isFiltered(filter)
        ? details.matching(organizationId, link, [from, to], { ...filter, bot: 0 })
        : countsOf(organizationId, [link], from, to).where({ dimension: "clicks" });
      const [row] = await readAside<Pick<NamedClicks, "clicks">>(counts.sum({ clicks: "clicks" }), READ_MS);
      return Number(row?.clicks ?? 0);
    },

    /**
     * Returns the IDs of the links with the most clicks, with these. With a filter, those with the most clicks that match,
     * among the links with the most clicks.
     */
    async topLinks(...[organizationId, from, to, count, filter = {}]: Parameters<LinkStore["topLinks"]>) {
      await settled();
      const ofAll = countsOf(organizationId, [ALL_LINKS], from, to);
      const toLinks = (sums: NamedClicks[]) =>
        topNames(sums, count).map(({ name, clicks }) => ({ id: name as string, clicks }));
      if (!isFiltered(filter)) return toLinks(await readTop("link", ofAll, count));
      const [sources, top] = await Promise.all([
        details.countSources(organizationId, filter),
        readTop("link", ofAll, CANDIDATES.max),
      ]);
      const ids = top.slice(0, Math.max(CANDIDATES.min, PAIRS / sources)).map(({ name }) => name);
      return toLinks(await details.sumByLink(organizationId, ids, [from, to], filter));
    },
  };
}

function sumDays(times: TimedClicks[]): Analytics["days"] {
  const groups = Map.groupBy(times, ({ dimension, day }) => `${dimension} ${day}`);
  return [...groups.values()].map((rows) => {
    const [{ dimension, day }] = rows as [TimedClicks];
    return { day, bot: dimension === "bots", clicks: rows.reduce((sum, row) => sum + Number(row.clicks), 0) };
  });
}

function toHours({ dimension, name, clicks }: TimedClicks): Analytics["hours"] {
  if (!name) return [];
  return [{ hour: Number(name), bot: dimension === "bots", clicks: Number(clicks) }];
}

function toNamed({ name, clicks }: NamedClicks): ClicksByName {
  return { name: name || null, clicks: Number(clicks) };
}

/** Sums clicks by one part of the user agent. */
function topParts(agents: NamedClicks[], part: number): ClicksByName[] {
  return topNames(agents.map(({ name, clicks }) => ({ name: partOf(name, part), clicks })));
}

/** Returns one part of a user agent, or an empty text if it is unknown. */
function partOf(agent: string, part: number): string {
  return (agent !== OTHER && agent.split(AGENT_SEPARATOR)[part]) || "";
}
