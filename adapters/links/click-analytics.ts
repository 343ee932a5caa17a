import type { Knex } from "knex";
import type { Analytics, ClickOrigin, ClicksByName, DailyClicks } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";
import type { ClickCountRow } from "../database/tables/links.ts";

/** The name of all that exceed the number of names in a day. */
export const OTHER = "(other)";
/** Separates the device, the browser and the operating system, none of whose names contains it. */
export const AGENT_SEPARATOR = "/";
/** The link of the rows that have the sum of all links. */
export const ALL_LINKS = "";

// The number of names to return, most clicks first.
const TOP_COUNT = 20;
// Their clicks of one origin are added up for a list of the first few. To do so for all links would take seconds, because
// no index has the origin before the link.
const CANDIDATES = 100;
// How long the database may take to add clicks up.
const READ_MS = 10_000;

type Dimension = ClickCountRow["dimension"];
// Some engines return sums as strings. The name is empty if it is unknown.
type TimedClicks = { dimension: Dimension; day: number; name?: string; clicks: number | string };
type Names = { dimension: Dimension; names: string[] };
type NamedClicks = { name: string; clicks: number | string };

/** Creates what adds up the counts of clicks. `settled` resolves once the clicks so far are stored. */
export function createClickAnalytics({ knex, readAside }: Database, settled: () => Promise<void>) {
  /** Queries the counts of some links. Both ends are inclusive. */
  const countsOf = (organizationId: string, linkIds: string[], from: number, to: number) =>
    knex("click_counts")
      .where({ organization_id: organizationId })
      .whereIn("link_id", linkIds)
      .whereBetween("day", [from, to]) as Knex.QueryBuilder;

  const sumBy = (columns: string[], counts: Knex.QueryBuilder) =>
    counts.groupBy(columns).select(columns).sum({ clicks: "clicks" });

  const readTop = (dimension: Dimension, counts: Knex.QueryBuilder, count = TOP_COUNT) => {
    const query = sumBy(["name"], counts.where({ dimension }))
      .orderBy([{ column: "clicks", order: "desc" }, "name"])
      .limit(count);
    return readAside<NamedClicks>(query, READ_MS);
  };

  /** Resolves to the names by which an origin is counted: its own, or those of the user agents that it is a part of. */
  async function namesOf({ by, value }: ClickOrigin, counts: Knex.QueryBuilder): Promise<Names> {
    const name = value ?? "";
    if (by === "referrer" || by === "country" || by === "destination")
      return { dimension: by, names: [name] };
    const agents = counts.where({ dimension: "agent" }).distinct("name");
    const all = (await readAside<{ name: string }>(agents, READ_MS)).map((row) => row.name);
    const part = AGENT_PARTS.indexOf(by);
    return { dimension: "agent", names: all.filter((agent) => partOf(agent, part) === name) };
  }

  /** Sums the clicks of an origin by a column. */
  async function readFrom(column: "day" | "link_id", origin: ClickOrigin, counts: () => Knex.QueryBuilder) {
    const { dimension, names } = await namesOf(origin, counts());
    const sums = sumBy([column], counts().where({ dimension }).whereIn("name", names));
    return readAside<{ day: number; link_id: string; clicks: number | string }>(sums, READ_MS);
  }

  return {
    /** Sums the clicks of one link of the organization, or of all its links. */
    async read(
      organizationId: string,
      linkId: string | undefined,
      from: number,
      to: number,
    ): Promise<Analytics> {
      await settled();
      const counts = () => countsOf(organizationId, [linkId ?? ALL_LINKS], from, to);
      const columns = from === to ? ["dimension", "day", "name"] : ["dimension", "day"];
      const byTime = sumBy(columns, counts().whereIn("dimension", ["clicks", "bots"]));
      const byAgent = sumBy(["name"], counts().where({ dimension: "agent" }));
      const [times, referrers, countries, destinations, agents] = await Promise.all([
        readAside<TimedClicks>(byTime, READ_MS),
        readTop("referrer", counts()),
        readTop("country", counts()),
        readTop("destination", counts()),
        readAside<NamedClicks>(byAgent, READ_MS),
      ]);
      return {
        days: sumDays(times),
        hours: times.flatMap(toHours),
        referrers: referrers.map(toNamed),
        countries: countries.map(toNamed),
        devices: topParts(agents, 0),
        browsers: topParts(agents, 1),
        operating_systems: topParts(agents, 2),
        destinations: destinations.map(toNamed),
      };
    },

    /** Sums the clicks of an origin by day, of one link or of all. */
    async days(
      organizationId: string,
      linkId: string | undefined,
      origin: ClickOrigin,
      from: number,
      to: number,
    ): Promise<DailyClicks> {
      await settled();
      const counts = () => countsOf(organizationId, [linkId ?? ALL_LINKS], from, to);
      const days = await readFrom("day", origin, counts);
      return days.map(({ day, clicks }) => ({ day, clicks: Number(clicks) }));
    },

    /**
     * Returns the IDs of the links with the most clicks, with these. With an origin, those with the most of its clicks,
     * among the 100 links with the most clicks.
     */
    async topLinks(organizationId: string, from: number, to: number, count: number, origin?: ClickOrigin) {
      await settled();
      const ofAll = countsOf(organizationId, [ALL_LINKS], from, to);
      const top = await readTop("link", ofAll, origin ? CANDIDATES : count);
      if (!origin) return top.map(({ name, clicks }) => ({ id: name, clicks: Number(clicks) }));
      const candidates = top.map(({ name }) => name);
      const counts = () => countsOf(organizationId, candidates, from, to);
      return (await readFrom("link_id", origin, counts))
        .map(({ link_id: id, clicks }) => ({ id, clicks: Number(clicks) }))
        .sort((one, other) => other.clicks - one.clicks || (one.id < other.id ? -1 : 1))
        .slice(0, count);
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
  const sums = new Map<string, number>();
  for (const { name, clicks } of agents) {
    const key = partOf(name, part);
    sums.set(key, (sums.get(key) ?? 0) + Number(clicks));
  }
  return [...sums]
    .map(([name, clicks]) => toNamed({ name, clicks }))
    .sort((one, other) => other.clicks - one.clicks || ((one.name ?? "") < (other.name ?? "") ? -1 : 1))
    .slice(0, TOP_COUNT);
}

const AGENT_PARTS: ClickOrigin["by"][] = ["device", "browser", "operating_system"];

/** Returns one part of a user agent, or an empty text if it is unknown. */
function partOf(agent: string, part: number): string {
  return (agent !== OTHER && agent.split(AGENT_SEPARATOR)[part]) || "";
}
