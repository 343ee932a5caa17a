import type { Click, Device } from "../../resources/links/types.ts";
import type { SampleLink, SampleOrganization, Weighted } from "./organizations.ts";

/** Equal clicks on one link. */
export type SampleClicks = { slug: string; click: Click; count: number };

type Random = () => number;
type Agent = [device: Device, browser: string, operatingSystem: string];

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
const HOURS: Weighted<number> = [
  3, 2, 2, 2, 2, 3, 5, 7, 9, 10, 10, 9, 10, 11, 11, 11, 11, 12, 12, 12, 11, 9, 7, 5,
].map((weight, hour) => [hour, weight]);
const AGENTS: Weighted<Agent> = [
  [["mobile", "Safari", "iOS"], 31],
  [["mobile", "Chrome", "Android"], 24],
  [["desktop", "Chrome", "Windows"], 15],
  [["desktop", "Chrome", "macOS"], 8],
  [["desktop", "Safari", "macOS"], 8],
  [["desktop", "Microsoft Edge", "Windows"], 5],
  [["desktop", "Firefox", "Windows"], 3],
  [["desktop", "Firefox", "Linux"], 2],
  [["tablet", "Safari", "iOS"], 3],
  [["mobile", "Samsung Internet for Android", "Android"], 1],
];

/** Returns the clicks of a year, oldest day first and none after `now`. They are the same for each call on one day. */
export function clicksOf(organization: SampleOrganization, now: number): SampleClicks[] {
  const random = createRandom(organization.links.length);
  const today = Math.floor(now / DAY_MS);
  const found: SampleClicks[] = [];
  for (let age = DAYS - 1; age >= 0; age--) {
    for (const link of organization.links) {
      if (link.age < age) continue;
      found.push(...clicksOfDay(organization, link, today - age, age, random));
    }
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
  const { slug, tags } = link;
  const total = round(
    expected(link, age) * (week[weekdayOf(day)] ?? 1) * (1 + NOISE * (random() - 0.5)),
    random,
  );
  const few = Math.min(total, SOURCES + Math.floor(total / CLICKS_PER_SOURCE));
  const sources = age < DETAILED_DAYS ? total : few;
  const origins = referrers[tags.find((tag) => Object.hasOwn(referrers, tag)) ?? ""] ?? [];
  const clicks = Array.from({ length: sources }, (_, index) => {
    const [device, browser, operatingSystem] = pick(AGENTS, random);
    const click: Click = {
      clickedAt: timeIn(day, random),
      referrer: tags.includes("print") ? null : pick(origins, random),
      country: pick(countries, random),
      device,
      browser,
      operatingSystem,
      bot: false,
    };
    return { slug, click, count: Math.floor((total + index) / sources) };
  });
  const bots = round(total * BOTS, random);
  return bots > 0 ? [...clicks, { slug, click: botClick(timeIn(day, random)), count: bots }] : clicks;
}

/** Returns the average clicks of a day, without weekday and chance. */
function expected({ daily, peaks }: SampleLink, age: number): number {
  const growth = FIRST + (1 - FIRST) * (1 - age / DAYS);
  const campaigns = peaks.map(([start, clicks]) =>
    age > start ? 0 : clicks * Math.exp((age - start) / PEAK_DAYS),
  );
  return daily * growth + campaigns.reduce((sum, clicks) => sum + clicks, 0);
}

function botClick(clickedAt: number): Click {
  return {
    clickedAt,
    referrer: null,
    country: "US",
    device: null,
    browser: null,
    operatingSystem: null,
    bot: true,
  };
}

function timeIn(day: number, random: Random): number {
  const hour = pick(HOURS, random);
  return day * DAY_MS + Math.floor((hour + random()) * HOUR_MS);
}

/** 1970-01-01 was a Thursday. */
function weekdayOf(day: number): number {
  return (day + 4) % 7;
}

function pick<Value>(weighted: Weighted<Value>, random: Random): Value {
  let sum = 0;
  for (const [, weight] of weighted) sum += weight;
  let left = random() * sum;
  for (const [value, weight] of weighted) {
    left -= weight;
    if (left < 0) return value;
  }
  return (weighted[0] as [Value, number])[0];
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
