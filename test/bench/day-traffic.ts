import { get } from "./connection.ts";
import type { NextRequest } from "./load.ts";

/** The requests of a day. A webhook is delivered for each link that is created. */
export const DAY = { redirects: 1_000_000_000, tokens: 50_000_000, links: 5_000_000 };
/** The links that exist. How often one is followed is inversely proportional to its rank. */
export const LINKS = 50_000_000;

/** Links in the database of the benchmark. Those beyond the first half stand for all of the rest. */
export const FILLED = 200_000;
const OWN_RANKS = FILLED / 2;
const SITES = 50;
const COUNTRIES = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZABCD"].map(
  (letter, index) => `${letter}${"ABC"[index % 3]}`,
);
const WITHOUT_REFERRER = 0.4;
const BOTS = 0.1;
const AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

// The rate of the busiest hour is so much above the mean, and that of the quietest below it.
const SWING = 0.75;
const BUSIEST_HOUR = 15;

/** The rate of an hour, relative to the mean of the day. */
export function rateOf(hour: number): number {
  return 1 + SWING * Math.cos(((hour - BUSIEST_HOUR) / 24) * 2 * Math.PI);
}

export const PEAK = 1 + SWING;

/** Returns a number from 1 to `count` whose probability is inversely proportional to it. */
const zipf = (count: number): number => Math.floor((count + 1) ** Math.random());

/** The probability of a number of `zipf`. */
const share = (rank: number, count: number) => Math.log((rank + 1) / rank) / Math.log(count + 1);

/** Redirects of links with referrers, countries and bots. Notes the numbers of the links if `followed` is given. */
export function clicks(host: string, followed?: Set<number>): NextRequest {
  return () => {
    const link = numberOf(zipf(LINKS));
    followed?.add(link);
    const referrer =
      Math.random() < WITHOUT_REFERRER ? "" : `Referer: https://site${zipf(SITES)}.example/page\r\n`;
    const country = `CF-IPCountry: ${COUNTRIES[zipf(COUNTRIES.length) - 1]}\r\n`;
    const agent = `User-Agent: ${Math.random() < BOTS ? BOT : AGENT}\r\n`;
    return get(host, `/f${link}`, referrer + country + agent);
  };
}

/** Lookups of links without a click. */
export function lookups(host: string): NextRequest {
  return () => get(host, `/f${numberOf(zipf(LINKS))}`).replace("GET", "HEAD");
}

/** Returns the number of the link of a rank. Popular links are spread over the table. */
function numberOf(rank: number): number {
  const place = rank <= OWN_RANKS ? (rank * 48_271) % OWN_RANKS : Math.floor(Math.random() * OWN_RANKS);
  return 1 + place * 2 + (rank <= OWN_RANKS ? 0 : 1);
}

/** Ranks that are about as popular as each other: each bucket is one percent wider than the one before. */
function rankBuckets(): { rank: number; count: number }[] {
  const buckets: { rank: number; count: number }[] = [];
  for (let from = 1; from <= LINKS; ) {
    const to = Math.min(LINKS + 1, from + Math.max(1, Math.floor(from / 100)));
    buckets.push({ rank: (from + to - 1) / 2, count: to - from });
    from = to;
  }
  return buckets;
}

/** Returns how many different links so many redirects are expected to follow. */
export function distinctLinks(redirects: number): number {
  return rankBuckets().reduce(
    (sum, { rank, count }) => sum + count * (1 - Math.exp(-redirects * share(rank, LINKS))),
    0,
  );
}

/** Returns how many rows of statistics a day of redirects is expected to add: of links, by each of their dimensions. */
export function statisticsRows(redirects: number): number {
  const hours: number[] = Array(24).fill(1 / 24);
  const referrers = [WITHOUT_REFERRER, ...sharesOf(SITES).map((part) => part * (1 - WITHOUT_REFERRER))];
  // All visitors have the same browser. Each link has a row in the sums of its organization, too.
  const ofPeople = [...hours, ...referrers, ...sharesOf(COUNTRIES.length), 1, 1];
  const names = [...ofPeople.map((part) => part * (1 - BOTS)), ...hours.map((part) => part * BOTS)];
  let rows = 0;
  for (const { rank, count } of rankBuckets()) {
    const ofLink = redirects * share(rank, LINKS);
    for (const name of names) rows += count * (1 - Math.exp(-ofLink * name));
  }
  return rows;
}

function sharesOf(count: number): number[] {
  return Array.from({ length: count }, (_, index) => share(index + 1, count));
}
