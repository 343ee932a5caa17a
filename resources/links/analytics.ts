import { z } from "zod";
import { invalidField, validate } from "../http/validate.ts";
import type { Analytics } from "./types.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;
// Days are stored as their number since then.
const TOO_EARLY = "must not be before 1970-01-01";

const date = z.iso.date({ error: "must be a date, for example 2030-01-31" });

export const analyticsQuery = z.strictObject({
  from: date.optional().describe("The first day. Defaults to 29 days before the last day."),
  to: date.optional().describe("The last day. Defaults to today."),
});

const clicks = z.int().describe("Clicks, excluding known bots.");
const bots = z.int().describe("Clicks from known bots.");

export const analyticsSchema = z
  .object({
    total: clicks,
    bots,
    days: z
      .array(z.object({ date: z.iso.date(), clicks, bots }))
      .describe("Every day of the range, oldest first."),
    referrers: z
      .array(z.object({ referrer: z.string().nullable(), clicks }))
      .describe(
        "The 20 referring sites (registrable domains) with the most clicks; null for clicks without a referrer. Visitors can send any value, so don't trust it.",
      ),
    countries: z
      .array(z.object({ country: z.string().nullable(), clicks }))
      .describe("The 20 countries (ISO 3166-1 alpha-2) with the most clicks; null for unknown countries."),
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
          { referrer: "example.com", clicks: 14 },
          { referrer: null, clicks: 3 },
        ],
        countries: [{ country: null, clicks: 17 }],
      },
    ],
  });

export type AnalyticsView = z.output<typeof analyticsSchema>;

/** Returns days since 1970-01-01 UTC. @throws Problem 422 `invalid_from` or `invalid_to` */
export function parseDateRange(query: unknown): { from: number; to: number } {
  const range = validate(analyticsQuery, query);
  const to = range.to === undefined ? Math.floor(Date.now() / DAY_MS) : toDay(range.to);
  const from = range.from === undefined ? Math.max(0, to - DEFAULT_DAYS + 1) : toDay(range.from);
  if (to < 0) throw invalidField("to", TOO_EARLY);
  if (from < 0) throw invalidField("from", TOO_EARLY);
  if (from > to) throw invalidField("from", "must not be after the last day");
  if (to - from >= MAX_DAYS) throw invalidField("from", `must start a range of at most ${MAX_DAYS} days`);
  return { from, to };
}

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
    referrers: analytics.referrers.map(({ name, clicks }) => ({ referrer: name, clicks })),
    countries: analytics.countries.map(({ name, clicks }) => ({ country: name, clicks })),
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
