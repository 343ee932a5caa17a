import type { AnalyticsView, ClicksFromView } from "../../../resources/links/analytics.ts";
import { CLICK_PROPERTIES, type ClickOrigin } from "../../../resources/links/types.ts";
import { type ChartPoint, chart } from "../../ui/chart.ts";
import { formatDay, meter, pluralize } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith, table } from "../../ui/table.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
// With more days, the months are below the chart instead of the first and last day.
const MAX_DAY_TICKS = 62;
// The date of the last day is below the rest of the chart.
const MONTHS_END = 0.7;
// With more, there is room for every other month on a phone.
const MAX_MONTHS = 6;
const HOURS_PER_TICK = 6;

type ClicksPanel = {
  title: string;
  empty: string;
  more?: Html;
  showSources?: boolean;
  /** The clicks of the period before, which has the same length. */
  previous?: number | undefined;
  /** Whether a database of countries is missing, which is said if no country is known. */
  needsCountries?: boolean;
  /** The path of the page that the names of sources lead to, filtered by them, if it isn't this one. */
  path?: string;
};

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const DAYS = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
const MONTHS = new Intl.DateTimeFormat("en-US", { month: "short", timeZone: "UTC" });
const RANGES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

/** Renders clicks as a chart, with where they come from. Those of known bots are named apart. */
export function clicksPanel(analytics: AnalyticsView, panel: ClicksPanel): Html {
  const { clicks, bot_clicks, days, hours } = analytics;
  const { title, empty, more = html``, showSources = true, previous } = panel;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  const change = describeChange(analytics, previous);
  if (clicks + bot_clicks === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}${change && ` ${change}`}</p></section>`;
  const points = hours ? pointsOfHours(days[0]?.date ?? "", hours) : pointsOfDays(days);
  return html`<section class="panel group">${heading}
${figure(clicks, bot_clicks, change)}
${chart({ unit: hours ? "hour" : "day", range: formatRange(analytics), points })}
${clicks > 0 && showSources && sources(analytics, panel)}
</section>`;
}

function figure(clicks: number, botClicks: number, change: string): Html {
  return html`<p><strong class="figure">${clicks.toLocaleString("en")}</strong> ${clicks === 1 ? "click" : "clicks"}${
    botClicks > 0 && html` <span class="soft">· ${botClicks.toLocaleString("en")} from known bots</span>`
  }${change && html`<br><span class="soft">${change}</span>`}</p>`;
}

/** Renders the clicks of one origin by day, and says what isn't known of them. */
export function originPanel(found: ClicksFromView, previous: number | undefined): Html {
  const { clicks, days } = found;
  const change = describeChange(found, previous);
  const range = formatRange(found);
  const points = pointsOfDays(days.map((day) => ({ ...day, bot_clicks: 0 })));
  return html`<section class="panel group"><div class="title"><h2>${range}</h2></div>
${figure(clicks, 0, change)}
${clicks > 0 && days.length > 1 && chart({ unit: "day", range, points })}
<p class="soft">With a filter, you see clicks by day. Hours, known bots and the other breakdowns aren’t available.</p>
</section>`;
}

/** Returns the name of an origin, such as “Country: Sweden”. */
export function describeOrigin(origin: ClickOrigin): string {
  return `${SOURCES[origin.by].head}: ${nameOf(origin)}`;
}

type Period = { days: { date: string }[] };

/** Returns how many clicks the period of the same length before had; undefined if that began before 1970. */
export async function readPrevious(
  { days }: Period,
  read: (range: { from: string; to: string }) => Promise<{ clicks: number }>,
): Promise<number | undefined> {
  const first = Date.parse(days[0]?.date ?? "");
  const from = first - days.length * DAY_MS;
  if (from < 0) return undefined;
  return (await read({ from: toDate(from), to: toDate(first - DAY_MS) })).clicks;
}

export function formatRange({ days }: Period): string {
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return first && last ? RANGES.formatRange(new Date(first), new Date(last)) : "";
}

/** Returns a date as the API writes it. */
export function toDate(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function describeChange(
  { clicks, days }: Period & { clicks: number },
  previous: number | undefined,
): string {
  if (previous === undefined) return "";
  const isToday = days.length === 1 && days[0]?.date === toDate(Date.now());
  // A day that isn't over can't be compared with a whole one.
  if (isToday) return `${pluralize(previous, "click")} yesterday.`;
  const before = days.length === 1 ? "the day before" : `the ${days.length} days before`;
  if (previous === 0) return clicks === 0 ? "" : `No clicks in ${before}.`;
  const percent = Math.round(((clicks - previous) / previous) * 100);
  const change = percent > 0 ? `+${percent.toLocaleString("en")}` : `${percent}`.replace("-", "−");
  return `${change}% compared with ${before}.`;
}

function pointsOfHours(date: string, hours: NonNullable<AnalyticsView["hours"]>): ChartPoint[] {
  const currentHour = Math.floor((Date.now() - Date.parse(date)) / HOUR_MS);
  return hours.map(({ hour, ...clicks }) => {
    const name = `${String(hour).padStart(2, "0")}:00`;
    const tick = hour % HOURS_PER_TICK === 0 ? name : undefined;
    return { name, ...clicks, tick, isOpen: hour === currentHour };
  });
}

function pointsOfDays(days: AnalyticsView["days"]): ChartPoint[] {
  const today = toDate(Date.now());
  const months = new Set(days.map(({ date }) => date.slice(0, 7)));
  const skipped = months.size > MAX_MONTHS ? 2 : 1;
  return days.map(({ date, ...clicks }, index) => {
    const at = Date.parse(date);
    const isMonthTick = date.endsWith("-01") && new Date(at).getUTCMonth() % skipped === 0;
    const isDayTick = index === 0 || index === Math.floor(days.length / 2);
    const isLast = index === days.length - 1;
    const isMonths = days.length > MAX_DAY_TICKS;
    const tick =
      isLast || (!isMonths && isDayTick)
        ? DAYS.format(at)
        : isMonths && isMonthTick && index < days.length * MONTHS_END && monthOf(at);
    return { name: formatDay(at), ...clicks, tick: tick || undefined, isOpen: date === today };
  });
}

function monthOf(at: number): string {
  const date = new Date(at);
  return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : MONTHS.format(date);
}

/** What clicks are counted by: the title of the list, the heading of its column and its name in the API. */
const SOURCES = {
  referrer: { title: "Referrers", head: "Referrer", list: "referrers" },
  country: { title: "Countries", head: "Country", list: "countries" },
  device: { title: "Devices", head: "Device", list: "devices" },
  browser: { title: "Browsers", head: "Browser", list: "browsers" },
  operating_system: { title: "Operating systems", head: "System", list: "operating_systems" },
} as const;

function nameOf({ by, value }: ClickOrigin): string {
  if (value === null) return by === "referrer" ? "Direct" : "Unknown";
  if (by === "device") return value.charAt(0).toUpperCase() + value.slice(1);
  // The query of a page may have any text.
  if (by === "country" && /^[A-Z]{2}$/.test(value)) return COUNTRIES.of(value) ?? value;
  return value;
}

const UNKNOWN_COUNTRIES = html`<div><h3>Countries</h3><p class="soft">Countries are unknown until the operator of this service sets <code>MMDB_PATH</code>.</p></div>`;

type Counted = { clicks: number; [property: string]: string | number | null };

function sources(analytics: AnalyticsView, { path = "", needsCountries }: ClicksPanel): Html {
  const { clicks: total, days } = analytics;
  const range = { from: days[0]?.date, to: days.at(-1)?.date };
  const lists = CLICK_PROPERTIES.map((by) => {
    const { title, head, list } = SOURCES[by];
    const counted: Counted[] = analytics[list];
    if (by === "country" && counted.every(({ country }) => country === null))
      return needsCountries && UNKNOWN_COUNTRIES;
    const rows = counted.map(({ clicks, [by]: value }) => {
      const origin = { by, value: value as string | null };
      const href = pathWith(path, { ...range, ...originQuery(origin) });
      return { clicks, name: html`<a href="${href}">${nameOf(origin)}</a>` };
    });
    return html`<div><h3>${title}</h3>${shareTable(head, rows, total)}</div>\n`;
  });
  return html`<div class="tiles places">
${lists}</div>`;
}

/** Returns the query that filters the analytics page by an origin; an empty value is the unknown one. */
export function originQuery({ by, value }: ClickOrigin): { by: string; value: string } {
  return { by, value: value ?? "" };
}

/** Renders clicks by name with a bar of their share of all clicks. */
export function shareTable(
  head: string,
  rows: { name: Html | string; clicks: number }[],
  total: number,
): Html {
  return html`<div class="shares">${table(
    head,
    {
      [head]: ({ name }) => name,
      Clicks: { number: ({ clicks }) => clicks },
      Share: ({ clicks }) => shareBar(clicks / total),
    },
    rows,
  )}</div>`;
}

function shareBar(share: number): Html {
  const percent = share > 0 && share < 0.01 ? "<1%" : `${Math.round(share * 100)}%`;
  return html`<span class="share">${meter(share)}${percent}</span>`;
}
