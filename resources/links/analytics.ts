import { z } from "zod";
import { isText } from "../http/text.ts";
import { invalidField, validate } from "../http/validate.ts";
import { nowIn } from "../time-zone.ts";
import { DEVICES } from "./redirect-rules.ts";
import {
  type Analytics,
  CLICK_LISTS,
  CLICK_PROPERTIES,
  type ClickFilter,
  type ClickList,
  type ClickProperty,
  type LinkStore,
} from "./types.ts";

const DAY_HOURS = 24;
const DAY_MS = DAY_HOURS * 60 * 60 * 1000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;
// Days are stored as their number since then.
const TOO_EARLY = "must not be before 1970-01-01";

const date = z.iso.date({ error: "must be a date, for example 2030-01-31" });

// Longer than any host name.
const MAX_NAME_LENGTH = 255;
const name = z
  .string()
  .max(MAX_NAME_LENGTH, { error: `must be at most ${MAX_NAME_LENGTH} characters` })
  .refine(isText, { error: "must not contain NUL or unpaired surrogates" })
  .optional();
const HOW = " Filters combine, and reach back 90 days by default. An empty one means unknown.";
const filters = CLICK_PROPERTIES.map((by, index) => {
  const property = by.replaceAll("_", " ").replace("utm", "UTM");
  return [by, name.describe(`The ${property}.${index === 0 ? HOW : ""}`)];
});

export const analyticsQuery = z.strictObject({
  from: date.optional().describe("The first day. Defaults to 29 days before `to`."),
  to: date.optional().describe("The last day. Defaults to today."),
  ...(Object.fromEntries(filters) as Record<ClickProperty, typeof name>),
});

const clicks = z.int().describe("Clicks, without those of known bots.");
const bot_clicks = z.int().describe("Clicks of known bots.");
const unknownIsNull = "null for clicks whose user agent doesn't tell.";

export const analyticsSchema = z
  .object({
    time_zone: z
      .string()
      .describe("The IANA name of the organization's time zone, which days and hours are in."),
    clicks,
    bot_clicks,
    days: z
      .array(z.object({ date: z.iso.date(), clicks, bot_clicks }))
      .describe("Every day of the range, oldest first."),
    hours: z
      .array(z.object({ hour: z.int().min(0).max(23), clicks, bot_clicks }))
      .optional()
      .describe(
        "The 24 hours of a range of one day. Absent for a longer range, and for a day whose hours are no longer kept.",
      ),
    referrers: z
      .array(z.object({ referrer: z.string().nullable(), clicks }))
      .describe(
        "The 20 referring sites (registrable domains) with the most clicks; null for clicks without a referrer. Visitors can send any value, so don't trust it.",
      ),
    countries: z
      .array(z.object({ country: z.string().nullable(), clicks }))
      .describe("The 20 countries (ISO 3166-1 alpha-2) with the most clicks; null for unknown countries."),
    devices: z
      .array(z.object({ device: z.enum(DEVICES).nullable(), clicks }))
      .describe(`Kinds of device, most clicks first; ${unknownIsNull}`),
    browsers: z
      .array(z.object({ browser: z.string().nullable(), clicks }))
      .describe(`The 20 browsers with the most clicks; ${unknownIsNull}`),
    operating_systems: z
      .array(z.object({ operating_system: z.string().nullable(), clicks }))
      .describe(`The operating systems with the most clicks; ${unknownIsNull}`),
    destinations: z
      .array(z.object({ destination: z.string(), clicks }))
      .describe(
        "Where clicks on links with rules led: the 20 URLs with the most clicks, of which the first 253 characters are kept.",
      ),
    utm_sources: z
      .array(z.object({ utm_source: z.string(), clicks }))
      .describe("The 20 UTM sources with the most clicks, of the URLs that visitors were sent to."),
    utm_mediums: z.array(z.object({ utm_medium: z.string(), clicks })).describe("The same of UTM mediums."),
    utm_campaigns: z
      .array(z.object({ utm_campaign: z.string(), clicks }))
      .describe("The same of UTM campaigns."),
  })
  .meta({
    title: "Analytics",
    examples: [
      {
        time_zone: "UTC",
        clicks: 17,
        bot_clicks: 2,
        days: [
          { date: "2026-02-28", clicks: 5, bot_clicks: 2 },
          { date: "2026-03-01", clicks: 12, bot_clicks: 0 },
        ],
        referrers: [
          { referrer: "example.com", clicks: 14 },
          { referrer: null, clicks: 3 },
        ],
        countries: [{ country: null, clicks: 17 }],
        devices: [{ device: "mobile", clicks: 17 }],
        browsers: [{ browser: "Safari", clicks: 17 }],
        operating_systems: [{ operating_system: "iOS", clicks: 17 }],
        destinations: [{ destination: "https://apps.example.com/store", clicks: 17 }],
        utm_sources: [{ utm_source: "newsletter", clicks: 9 }],
        utm_mediums: [{ utm_medium: "email", clicks: 9 }],
        utm_campaigns: [{ utm_campaign: "spring", clicks: 9 }],
      },
    ],
  });

export type AnalyticsView = z.output<typeof analyticsSchema>;

/** In days since 1970-01-01. */
type Range = { from: number; to: number };

/**
 * Returns the range of a query, its filter, and the first day of which clicks can be filtered.
 * @throws Problem 422 `invalid_from` or `invalid_to`
 */
export function parseAnalyticsQuery(
  query: unknown,
  { filteredDays, timeZone }: Awaited<ReturnType<LinkStore["countedDays"]>>,
): Range & { filter: ClickFilter; first: number } {
  const { from, to, ...filter } = validate(analyticsQuery, query);
  const today = dayIn(timeZone);
  const first = today - filteredDays + 1;
  if (!isFiltered(filter)) return { ...toDays({ from, to }, today), filter, first };
  const range = toDays({ from, to }, today, first);
  if (range.from < first)
    throw invalidField(
      "from",
      `must be one of the last ${filteredDays} days, of which clicks can be filtered`,
    );
  return { ...range, filter, first };
}

export function isFiltered(filter: ClickFilter): boolean {
  return Object.keys(filter).length > 0;
}

/** Returns the number of the current day. */
export function dayIn(timeZone: string): number {
  return Math.floor(nowIn(timeZone) / DAY_MS);
}

/** @param first the earliest day by default */
function toDays(
  range: Pick<z.output<typeof analyticsQuery>, "from" | "to">,
  today: number,
  first = 0,
): Range {
  const to = range.to === undefined ? today : toDay(range.to);
  const from =
    range.from === undefined ? Math.min(to, Math.max(first, to - DEFAULT_DAYS + 1)) : toDay(range.from);
  if (to < 0) throw invalidField("to", TOO_EARLY);
  if (from < 0) throw invalidField("from", TOO_EARLY);
  if (from > to) throw invalidField("from", "must not be after the last day");
  if (to - from >= MAX_DAYS) throw invalidField("from", `must start a range of at most ${MAX_DAYS} days`);
  return { from, to };
}

export function toAnalyticsView(analytics: Analytics, { from, to }: Range, time_zone: string): AnalyticsView {
  const days = Array.from({ length: to - from + 1 }, (_, index) => ({ date: toDate(from + index), ...NONE }));
  for (const { day, ...counted } of analytics.days) add(days[day - from], counted);
  const hours = Array.from({ length: DAY_HOURS }, (_, hour) => ({ hour, ...NONE }));
  for (const { hour, ...counted } of analytics.hours) add(hours[hour], counted);
  const hasHours = analytics.hours.length > 0 || analytics.days.length === 0; // both are absent without clicks
  const lists = Object.entries(CLICK_LISTS).map(([by, list]) => [
    list,
    analytics[list].map(({ name, clicks }) => ({ [by]: name, clicks })),
  ]);
  return {
    time_zone,
    clicks: days.reduce((sum, { clicks }) => sum + clicks, 0),
    bot_clicks: days.reduce((sum, { bot_clicks }) => sum + bot_clicks, 0),
    days,
    ...(from === to && hasHours && { hours }),
    ...(Object.fromEntries(lists) as Pick<AnalyticsView, ClickList>),
  };
}

type Counts = Pick<AnalyticsView, "clicks" | "bot_clicks">;

const NONE: Counts = { clicks: 0, bot_clicks: 0 };

function add(entry: Counts | undefined, { bot, clicks }: { bot: boolean; clicks: number }): void {
  if (entry) entry[bot ? "bot_clicks" : "clicks"] += clicks;
}

function toDay(date: string): number {
  return Date.parse(date) / DAY_MS;
}

/** Returns the date of a day. */
export function toDate(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
