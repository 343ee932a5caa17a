import type { Role } from "../../resources/access/scopes.ts";
import type { Click, ClickSource } from "../../resources/links/types.ts";
import type { Plan } from "../../resources/plans.ts";
import sample from "./sample.json" with { type: "json" };

/** How often each value occurs, relative to the others. */
type Weights = Record<string, number>;

/** Ages are in days. `daily` are the clicks of an average day at present; `peaks` have the first day of each campaign. */
export type SampleLink = [
  slug: string,
  title: string,
  tags: string,
  age: number,
  daily: number,
  peaks?: Weights,
];

export type SampleOrganization = {
  name: string;
  plan: Plan;
  site: string;
  /** By username, the owner first. */
  members: Record<string, Role>;
  /** The clicks of each weekday, from Sunday, relative to an average day. */
  week: number[];
  countries: Weights;
  /** By tag; `other` is for links with none of the tags. `direct` is a visit without a referrer. */
  referrers: { other: Weights } & Record<string, Weights>;
  links: SampleLink[];
};

export const ORGANIZATIONS = sample.organizations as unknown as SampleOrganization[];

const HOUR_MS = 60 * 60 * 1000;
export const DAY_MS = 24 * HOUR_MS;
const DAYS = 365;
// The share of today's clicks that a year has added.
const GROWTH = 0.58;
// The days in which the clicks of a campaign fall to about a third.
const PEAK_DAYS = 3.2;
const NOISE = 0.34;
const BOTS = 0.06;
// Clicks of a day are divided among few sources, so that a year is stored in seconds.
const CLICKS_PER_SOURCE = 12;
// The pages show these by the hour, so each click has a time of its own.
const DETAILED_DAYS = 2;
const BOT = {
  destination: null,
  referrer: null,
  country: "US",
  device: null,
  browser: null,
  operatingSystem: null,
  bot: true,
};

type SampleClick = ClickSource & Pick<Click, "clickedAt" | "destination">;

/** Returns a function for the clicks on a link in the last year: equal ones, and how many. In each process, it returns the same. */
export function createClicks(now: number) {
  const today = Math.floor(now / DAY_MS);
  let state = 1;
  const random = () => {
    // A linear congruential generator.
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
  // A fraction is the probability of one more, which keeps the sum of small numbers.
  const round = (value: number) => Math.floor(value + random());
  const pick = (weights: Weights | number[]) => {
    let left = random() * Object.values(weights).reduce((sum, weight) => sum + weight);
    const isNext = ([, weight]: [string, number]) => {
      left -= weight;
      return left < 0;
    };
    return Object.entries(weights).find(isNext)?.[0] ?? "";
  };
  // In UTC, for visitors in Europe and America.
  const pickTime = (day: number) => Math.floor((day * 24 + Number(pick(sample.hours)) + random()) * HOUR_MS);

  return function* clicksOn(
    { week, countries, referrers }: SampleOrganization,
    [, , tags, created, daily, peaks = {}]: SampleLink,
  ): Generator<[click: SampleClick, count: number]> {
    const tag = tags.split(",").find((name) => Object.hasOwn(referrers, name)) ?? "other";
    for (let age = Math.min(created, DAYS - 1); age >= 0; age--) {
      const day = today - age;
      // 1970-01-01 was a Thursday.
      const weekday = week[(day + 4) % 7] ?? 1;
      const campaigns = Object.entries(peaks)
        .filter(([start]) => age <= Number(start))
        .map(([start, clicks]) => clicks * Math.exp((age - Number(start)) / PEAK_DAYS));
      const average = campaigns.reduce((sum, clicks) => sum + clicks, daily * (1 - GROWTH * (age / DAYS)));
      const total = round(average * weekday * (1 + NOISE * (random() - 0.5)));
      const sources = age < DETAILED_DAYS ? total : Math.ceil(total / CLICKS_PER_SOURCE);
      for (let index = 0; index < sources; index++) {
        const [device, browser, operatingSystem] = pick(sample.agents).split("/");
        const origin = tags.includes("print") ? "direct" : pick(referrers[tag] as Weights);
        const referrer = origin === "direct" ? null : origin;
        const source = {
          destination: null,
          referrer,
          country: pick(countries),
          device,
          browser,
          operatingSystem,
        } as SampleClick;
        yield [{ ...source, clickedAt: pickTime(day), bot: false }, Math.floor((total + index) / sources)];
      }
      yield [{ ...BOT, clickedAt: pickTime(day) }, round(total * BOTS)];
    }
  };
}
