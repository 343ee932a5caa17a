import { z } from "zod";
import type { Analytics, Share } from "../ports.ts";
import { Problem } from "../problem.ts";
import { validate } from "../validate.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;
// Days are counted from then on.
const TOO_EARLY = "This must not be before 1970-01-01.";

const date = z.iso.date({ error: "This must be a date, such as 2030-01-31." });

/** Which days the analytics are about, in UTC. */
export const analyticsQuery = z.strictObject({
  from: date.optional().describe("The first day; 29 days before the last one if absent."),
  to: date.optional().describe("The last day; today if absent."),
});

const clicks = z.int().describe("Clicks, without those of known bots.");
const bots = z.int().describe("Clicks of known bots.");

/** Clicks as the API shows them. */
export const analyticsSchema = z
  .object({
    total: clicks,
    bots,
    days: z.array(z.object({ date: z.iso.date(), clicks, bots })).describe("Every day, oldest first."),
    referrers: z
      .array(z.object({ referrer: z.string().nullable(), clicks }))
      .describe("The 20 hosts that most clicks came from; null for those that did not say."),
    countries: z
      .array(z.object({ country: z.string().nullable(), clicks }))
      .describe(
        "The 20 countries, ISO 3166-1 alpha-2, that most clicks came from; null where it is not known.",
      ),
  })
  .meta({
    title: "Analytics",
    examples: [
      {
        total: 17,
        bots: 2,
        days: [
          { date: "2026-02-28", clicks: 5, bots: 2 },
          { date: "2026-03-01", clicks: 12, bots: 0 },
        ],
        referrers: [
          { referrer: "news.example.com", clicks: 14 },
          { referrer: null, clicks: 3 },
        ],
        countries: [{ country: null, clicks: 17 }],
      },
    ],
  });

export type AnalyticsView = z.output<typeof analyticsSchema>;

/** The days of a query, in days since 1970, both included. @throws Problem 422 when they are none, or too many */
export function daysOf(query: unknown): { from: number; to: number } {
  const given = validate(analyticsQuery, query);
  const to = given.to === undefined ? Math.floor(Date.now() / DAY_MS) : toDay(given.to);
  const from = given.from === undefined ? Math.max(0, to - DEFAULT_DAYS + 1) : toDay(given.from);
  if (to < 0) throw wrong("to", TOO_EARLY);
  if (from < 0) throw wrong("from", TOO_EARLY);
  if (from > to) throw wrong("from", "This must not be later than the last day.");
  if (to - from >= MAX_DAYS) throw wrong("from", `Ask for at most ${MAX_DAYS} days.`);
  return { from, to };
}

/** Analytics in the words of the API: every day is there, also those without a click. */
export function toAnalyticsView(analytics: Analytics, from: number, to: number): AnalyticsView {
  const days = Array.from({ length: to - from + 1 }, (_, index) => ({
    date: toDate(from + index),
    clicks: 0,
    bots: 0,
  }));
  for (const { day, bot, clicks } of analytics.days) {
    const entry = days[day - from];
    if (entry) entry[bot ? "bots" : "clicks"] += clicks;
  }
  return {
    total: sum(days.map(({ clicks }) => clicks)),
    bots: sum(days.map(({ bots }) => bots)),
    days,
    referrers: analytics.referrers.map(({ name, clicks }: Share) => ({ referrer: name, clicks })),
    countries: analytics.countries.map(({ name, clicks }: Share) => ({ country: name, clicks })),
  };
}

function toDay(date: string): number {
  return Date.parse(date) / DAY_MS;
}

function toDate(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function wrong(field: "from" | "to", message: string): Problem {
  return new Problem(422, `invalid_${field}`, message, { errors: [{ field, message }] });
}
