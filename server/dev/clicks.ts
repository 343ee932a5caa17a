import type { Role } from "../../resources/access/scopes.ts";
import type { Click, Device } from "../../resources/links/types.ts";
import type { Plan } from "../../resources/plans.ts";
import organizations from "./organizations.json" with { type: "json" };

/** How often each value occurs, relative to the others. */
type Weights = Record<string, number>;

/** A link and its history. Ages are in days, and `daily` are the clicks of an average day at present. */
type SampleLink = [
  slug: string,
  title: string,
  tags: string,
  age: number,
  daily: number,
  /** The clicks of the first day of each campaign, by its age. */
  peaks?: Weights,
];

export type SampleOrganization = {
  name: string;
  plan: Plan;
  /** Where the links lead. */
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

export const ORGANIZATIONS = organizations as unknown as SampleOrganization[];

/** Equal clicks on one link. */
export type SampleClicks = { slug: string; click: Click; count: number };

type Random = () => number;

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const DAYS = 365;
// The clicks of the first day, relative to today.
const FIRST = 0.42;
// The days in which the clicks of a campaign fall to about a third.
const PEAK_DAYS = 3.2;
const NOISE = 0.34;
const BOTS = 0.06;
// Clicks of a day are divided among few sources, so that a year is stored in seconds.
const SOURCES = 2;
const CLICKS_PER_SOURCE = 40;
// The pages show these by the hour, so each click has a time of its own.
const DETAILED_DAYS = 2;
// In UTC, for visitors in Europe and America.
const HOURS: Weights = Object.fromEntries(
  [3, 2, 2, 2, 2, 3, 5, 7, 9, 10, 10, 9, 10, 11, 11, 11, 11, 12, 12, 12, 11, 9, 7, 5].entries(),
);
const AGENTS: Weights = {
  "mobile/Safari/iOS": 31,
  "mobile/Chrome/Android": 24,
  "desktop/Chrome/Windows": 15,
  "desktop/Chrome/macOS": 8,
  "desktop/Safari/macOS": 8,
  "desktop/Microsoft Edge/Windows": 5,
  "desktop/Firefox/Windows": 3,
  "desktop/Firefox/Linux": 2,
  "tablet/Safari/iOS": 3,
  "mobile/Samsung Internet for Android/Android": 1,
};
const BOT = { referrer: null, country: "US", device: null, browser: null, operatingSystem: null, bot: true };

/** Returns the clicks of a year, oldest day first and none after `now`. They are the same for each call on one day. */
export function clicksOf(organization: SampleOrganization, now: number): SampleClicks[] {
  const random = createRandom(organization.links.length);
  const today = Math.floor(now / DAY_MS);
  const found: SampleClicks[] = [];
  for (let age = DAYS - 1; age >= 0; age--) {
    for (const link of organization.links.filter(([, , , linkAge]) => linkAge >= age))
      found.push(...clicksOfDay(organization, link, today - age, age, random));
  }
  return found.filter(({ click }) => click.clickedAt <= now);
}

function clicksOfDay(
  { week, countries, referrers }: SampleOrganization,
  link: SampleLink,
  day: number,
  age: number,
  random: Random,
): SampleClicks[] {
  const [slug, , tags] = link;
  // 1970-01-01 was a Thursday.
  const weekday = week[(day + 4) % 7] ?? 1;
  const total = round(expected(link, age) * weekday * (1 + NOISE * (random() - 0.5)), random);
  const few = Math.min(total, SOURCES + Math.floor(total / CLICKS_PER_SOURCE));
  const sources = age < DETAILED_DAYS ? total : few;
  const origins = referrers[tags.split(",").find((tag) => Object.hasOwn(referrers, tag)) ?? "other"];
  const clicks = Array.from({ length: sources }, (_, index) => {
    const [device, browser, operatingSystem] = pick(AGENTS, random).split("/") as [Device, string, string];
    const clickedAt = timeIn(day, random);
    const origin = tags.includes("print") ? "direct" : pick(origins ?? referrers.other, random);
    const referrer = origin === "direct" ? null : origin;
    const country = pick(countries, random);
    const click: Click = { clickedAt, referrer, country, device, browser, operatingSystem, bot: false };
    return { slug, click, count: Math.floor((total + index) / sources) };
  });
  const count = round(total * BOTS, random);
  return count > 0 ? [...clicks, { slug, click: { ...BOT, clickedAt: timeIn(day, random) }, count }] : clicks;
}

/** Returns the average clicks of a day, without weekday and chance. */
function expected([, , , , daily, peaks = {}]: SampleLink, age: number): number {
  const growth = FIRST + (1 - FIRST) * (1 - age / DAYS);
  const campaigns = Object.entries(peaks).map(([start, clicks]) =>
    age > Number(start) ? 0 : clicks * Math.exp((age - Number(start)) / PEAK_DAYS),
  );
  return daily * growth + campaigns.reduce((sum, clicks) => sum + clicks, 0);
}

function timeIn(day: number, random: Random): number {
  const hour = Number(pick(HOURS, random));
  return day * DAY_MS + Math.floor((hour + random()) * HOUR_MS);
}

function pick(weights: Weights, random: Random): string {
  let left = random() * Object.values(weights).reduce((sum, weight) => sum + weight);
  for (const value in weights) {
    left -= weights[value] as number;
    if (left < 0) return value;
  }
  throw new RangeError("there are no weights");
}

/** Rounds up with the probability of the fraction, which keeps the sum of small numbers. */
function round(value: number, random: Random): number {
  return Math.floor(value + random());
}

/** Returns a pseudorandom number generator (mulberry32) with a seed. */
function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
