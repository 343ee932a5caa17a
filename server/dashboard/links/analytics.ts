import type { AnalyticsView, ClicksFromView } from "../../../resources/links/analytics.ts";
import type { ClickOrigin } from "../../../resources/links/types.ts";
import { type ChartPoint, chart, clickCount } from "../../ui/chart.ts";
import { formatDay, meter } from "../../ui/controls.ts";
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

export type ClicksPanel = {
  title: string;
  empty: string;
  more?: Html;
  showSources?: boolean;
  /** The clicks of the period before, which has the same length. */
  previous?: number | undefined;
  /** Whether a database of countries is missing, which is said if no country is known. */
  needsCountries?: boolean;
  /** The path of the analytics page, which the names of sources lead to, filtered by them. */
  path?: string;
};

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const DAYS = new Intl.DateTimeFormat("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
const MONTHS = new Intl.DateTimeFormat("en-US", { month: "short", timeZone: "UTC" });
const RANGES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });
const DEVICES = new Map<string | null, string>([
  ["desktop", "Desktop"],
  ["mobile", "Mobile"],
  ["tablet", "Tablet"],
]);

/** Renders clicks as a chart, with where they come from. Those of known bots are named apart. */
export function clicksPanel(analytics: AnalyticsView, panel: ClicksPanel): Html {
  const { clicks, bot_clicks } = analytics;
  const { title, empty, more = html``, showSources = true, previous } = panel;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  const change = previous === undefined ? "" : describeChange(analytics, previous);
  if (clicks + bot_clicks === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}${change && ` ${change}`}</p></section>`;
  return html`<section class="panel group">${heading}
${figure(clicks, bot_clicks, change)}
${clicksChart(analytics)}
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
  const change = previous === undefined ? "" : describeChange(found, previous);
  const range = formatRange(found);
  const points = pointsOfDays(days.map((day) => ({ ...day, bot_clicks: 0 })));
  return html`<section class="panel group"><div class="title"><h2>${range}</h2></div>
${figure(clicks, 0, change)}
${clicks > 0 && days.length > 1 && chart({ unit: "day", range, points })}
<p class="soft">With a filter, you see clicks by day. Hours, known bots and the other breakdowns aren’t available.</p>
</section>`;
}

/** Returns the name of an origin, such as “Country: Sweden”. */
export function describeOrigin({ by, value }: ClickOrigin): string {
  return `${SOURCES[by].head}: ${SOURCES[by].nameOf(value)}`;
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

function describeChange({ clicks, days }: Period & { clicks: number }, previous: number): string {
  const isToday = days.length === 1 && days[0]?.date === toDate(Date.now());
  // A day that isn't over can't be compared with a whole one.
  if (isToday) return `${clickCount(previous)} yesterday.`;
  const before = days.length === 1 ? "the day before" : `the ${days.length} days before`;
  if (previous === 0) return clicks === 0 ? "" : `No clicks in ${before}.`;
  const percent = Math.round(((clicks - previous) / previous) * 100);
  const change = percent > 0 ? `+${percent.toLocaleString("en")}` : `${percent}`.replace("-", "−");
  return `${change}% compared with ${before}.`;
}

function clicksChart(analytics: AnalyticsView): Html {
  const { days, hours } = analytics;
  const range = formatRange(analytics);
  if (hours) return chart({ unit: "hour", range, points: pointsOfHours(days[0]?.date ?? "", hours) });
  return chart({ unit: "day", range, points: pointsOfDays(days) });
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

const SOURCES: Record<
  ClickOrigin["by"],
  { title: string; head: string; nameOf(value: string | null): string }
> = {
  referrer: { title: "Referrers", head: "Referrer", nameOf: (value) => value ?? "Direct" },
  country: { title: "Countries", head: "Country", nameOf: countryName },
  device: { title: "Devices", head: "Device", nameOf: (value) => DEVICES.get(value) ?? value ?? "Unknown" },
  browser: { title: "Browsers", head: "Browser", nameOf: (value) => value ?? "Unknown" },
  operating_system: { title: "Operating systems", head: "System", nameOf: (value) => value ?? "Unknown" },
};

type Source = { name: string; clicks: number };

function sources(analytics: AnalyticsView, { path, needsCountries }: ClicksPanel): Html {
  const { clicks: total, days, referrers, countries, devices, browsers, operating_systems } = analytics;
  const range = { from: days[0]?.date, to: days.at(-1)?.date };
  const list = (by: ClickOrigin["by"], found: { value: string | null; clicks: number }[]) => {
    const { title, head, nameOf } = SOURCES[by];
    const rows = found.map(({ value, clicks }) => ({ value, clicks, name: nameOf(value) }));
    const link = ({ name, value }: (typeof rows)[number]) =>
      path
        ? html`<a href="${pathWith(path, { ...range, ...originQuery({ by, value }) })}">${name}</a>`
        : name;
    return html`<div><h3>${title}</h3>${shareTable(head, rows, total, link)}</div>\n`;
  };
  const hasCountries = countries.some(({ country }) => country !== null);
  return html`<div class="tiles places">
${list(
  "referrer",
  referrers.map(({ referrer, clicks }) => ({ value: referrer, clicks })),
)}
${
  hasCountries
    ? list(
        "country",
        countries.map(({ country, clicks }) => ({ value: country, clicks })),
      )
    : needsCountries &&
      html`<div><h3>Countries</h3><p class="soft">Countries are unknown until the operator of this service sets <code>MMDB_PATH</code>.</p></div>`
}
${list(
  "device",
  devices.map(({ device, clicks }) => ({ value: device, clicks })),
)}
${list(
  "browser",
  browsers.map(({ browser, clicks }) => ({ value: browser, clicks })),
)}
${list(
  "operating_system",
  operating_systems.map(({ operating_system, clicks }) => ({ value: operating_system, clicks })),
)}
</div>`;
}

/** Returns the query that filters the analytics page by an origin; without a value, by the unknown one. */
export function originQuery({ by, value }: ClickOrigin): Record<string, string | undefined> {
  return { by, value: value ?? undefined };
}

/** Renders clicks by name with a bar of their share of all clicks. */
export function shareTable<Row extends Source>(
  head: string,
  rows: Row[],
  total: number,
  render: (row: Row) => Html | string = ({ name }) => name,
): Html {
  return html`<div class="shares">${table(
    head,
    {
      [head]: render,
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

function countryName(country: string | null): string {
  if (country === null) return "Unknown";
  // The query of a page may have any text.
  return /^[A-Z]{2}$/.test(country) ? (COUNTRIES.of(country) ?? country) : country;
}
