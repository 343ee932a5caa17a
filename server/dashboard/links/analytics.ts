import type { Caller } from "../../../resources/access/actor.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { LinkService } from "../../../resources/links/service.ts";
import { type ChartPoint, chart, clickCount } from "../../ui/chart.ts";
import { formatDay, meter } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
// With more days, the months are below the chart instead of the first and last day.
const MAX_DAY_TICKS = 62;
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
};

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const MONTHS = new Intl.DateTimeFormat("en-US", { month: "short", timeZone: "UTC" });
const RANGES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });
const DEVICES = { desktop: "Desktop", mobile: "Mobile", tablet: "Tablet" };

/** Renders clicks as a chart, with where they come from. Those of known bots are named apart. */
export function clicksPanel(analytics: AnalyticsView, panel: ClicksPanel): Html {
  const { clicks, bot_clicks } = analytics;
  const { title, empty, more = html``, showSources = true, previous } = panel;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  const change = previous === undefined ? "" : describeChange(analytics, previous);
  if (clicks + bot_clicks === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}${change && ` ${change}`}</p></section>`;
  return html`<section class="panel group">${heading}
<p><strong class="figure">${clicks.toLocaleString("en")}</strong> ${clicks === 1 ? "click" : "clicks"}${
    bot_clicks > 0 && html` <span class="soft">· ${bot_clicks.toLocaleString("en")} from known bots</span>`
  }${change && html`<br><span class="soft">${change}</span>`}</p>
${clicksChart(analytics)}
${clicks > 0 && showSources && sources(analytics, panel.needsCountries ?? false)}
</section>`;
}

/** Returns how many clicks the period of the same length before had; undefined if that began before 1970. */
export async function readPrevious(
  links: Pick<LinkService, "analytics">,
  caller: Caller,
  linkId: string | undefined,
  { days }: AnalyticsView,
): Promise<number | undefined> {
  const first = Date.parse(days[0]?.date ?? "");
  const from = first - days.length * DAY_MS;
  if (from < 0) return undefined;
  const query = { from: toDate(from), to: toDate(first - DAY_MS) };
  return (await links.analytics(caller, linkId, query)).clicks;
}

export function formatRange({ days }: AnalyticsView): string {
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return first && last ? RANGES.formatRange(new Date(first), new Date(last)) : "";
}

/** Returns a date as the API writes it. */
export function toDate(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function describeChange({ clicks, days }: AnalyticsView, previous: number): string {
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
    const tick = days.length > MAX_DAY_TICKS ? isMonthTick && monthOf(at) : isDayTick && formatDay(at);
    return { name: formatDay(at), ...clicks, tick: tick || undefined, isOpen: date === today };
  });
}

function monthOf(at: number): string {
  const date = new Date(at);
  return date.getUTCMonth() === 0 ? String(date.getUTCFullYear()) : MONTHS.format(date);
}

type Source = { name: string; clicks: number };

function sources(analytics: AnalyticsView, needsCountries: boolean): Html {
  const { clicks: total, referrers, countries, devices, browsers, operating_systems } = analytics;
  const hasCountries = countries.some(({ country }) => country !== null);
  const list = (title: string, head: string, rows: Source[]) =>
    html`<div><h3>${title}</h3>${shareTable(head, rows, total)}</div>\n`;
  return html`<div class="tiles places">
${list(
  "Referrers",
  "Referrer",
  named(referrers, ({ referrer }) => referrer ?? "Direct"),
)}
${
  hasCountries
    ? list(
        "Countries",
        "Country",
        named(countries, ({ country }) => countryName(country)),
      )
    : needsCountries &&
      html`<div><h3>Countries</h3><p class="soft">Countries are unknown until the operator of this service sets <code>MMDB_PATH</code>.</p></div>`
}
${list(
  "Devices",
  "Device",
  named(devices, ({ device }) => (device ? DEVICES[device] : "Unknown")),
)}
${list(
  "Browsers",
  "Browser",
  named(browsers, ({ browser }) => browser ?? "Unknown"),
)}
${list(
  "Operating systems",
  "System",
  named(operating_systems, ({ operating_system }) => operating_system ?? "Unknown"),
)}
</div>`;
}

function named<Row extends { clicks: number }>(rows: Row[], nameOf: (row: Row) => string): Source[] {
  return rows.map((row) => ({ name: nameOf(row), clicks: row.clicks }));
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
  return COUNTRIES.of(country) ?? country;
}
