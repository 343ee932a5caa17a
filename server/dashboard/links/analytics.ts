import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import {
  CLICK_LISTS,
  CLICK_PROPERTIES,
  type ClickedLink,
  type ClickProperty,
  isOptional,
} from "../../../resources/links/types.ts";
import { nowIn } from "../../../resources/time-zone.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { chart } from "../../ui/chart.ts";
import { field, hidden, icon, linkButton, meter } from "../../ui/controls.ts";
import { isManager } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith, table, tabs } from "../../ui/table.ts";
import { capitalized, pluralize, toDate } from "../../ui/text.ts";
import { actorOf, membershipOf, pathTo, TIME_ZONE } from "../access.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show } from "../forms.ts";
import { sendJson, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { displayUrl } from "./list.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const TOP_LINKS = 10;

export const analytics: RouteModule = (router, options) => {
  const { allow } = options;
  const show: Show = (ctx, _error, problem) => showAnalytics(ctx, options, problem);
  for (const path of [`${ORGANIZATION}/analytics`, `${ORGANIZATION}/links/:link_id/analytics`]) {
    router.get(path, allow(), redisplayForm(show), (ctx) => show(ctx));
  }
};

/** A range of days and filters, as in the address of a page. */
export type ClicksQuery = { [name in "from" | "to" | ClickProperty]?: string | undefined };

const RANGE: string[] = ["from", "to"] satisfies (keyof ClicksQuery)[];

/** Returns the range and the filters of a page's address. An empty filter is the unknown name, but an empty date is none. */
export function clicksQueryOf(
  ctx: Context,
  names: readonly string[] = [...RANGE, ...CLICK_PROPERTIES],
): ClicksQuery {
  const given = Object.entries(ctx.query).filter(
    ([name, value]) => names.includes(name) && (value !== "" || !RANGE.includes(name)),
  );
  return Object.fromEntries(given);
}

async function showAnalytics(
  ctx: Context,
  { services: { links }, urls, settings }: DashboardOptions,
  problem: Problem | undefined,
): Promise<void> {
  const linkId = ctx.params.link_id as string | undefined;
  const caller = actorOf(ctx);
  if (!prefersHtml(ctx)) return sendJson(ctx, await links.analytics(caller, linkId, ctx.query));

  const { error, errors } = queryErrors(problem, RANGE);
  const names = problem ? [] : Object.keys(ctx.query);
  const isRangeWrong = problem && Object.keys(errors).every((name) => RANGE.includes(name));
  const given = clicksQueryOf(ctx, isRangeWrong ? CLICK_PROPERTIES : names);
  const [report, link] = await Promise.all([
    links.report(caller, linkId, given, linkId === undefined ? TOP_LINKS : 0),
    linkId === undefined ? undefined : links.get(caller, linkId),
  ]);
  const { found, previous, topLinks: top, earliest } = report;

  const query: ClicksQuery = { ...given, ...rangeOf(found) };
  const filters = filtersOf(query);
  const typed = problem ? (ctx.query as ClicksQuery) : query;
  const hint = filters.length > 0 && "Among the links with the most clicks in this date range.";
  const topLinks = { total: found.clicks, path: pathTo(ctx, "links"), query, shortUrl: urls.short, hint };
  const body = html`${rangeForm(ctx.path, { ...query, from: typed.from, to: typed.to }, errors, found, earliest)}
${filterChips(ctx.path, query)}
${clicksPanel(found, { title: formatRange(found), empty: "No clicks in this date range.", previous })}
${top.length > 0 && topLinksPanel(top, topLinks)}
${sourcesPanel(found, { path: ctx.path, query, earliest, needsCountries: settings.MMDB_PATH === undefined })}
${link && html`<p>${linkButton(clicksPath(`${pathTo(ctx, "links")}/${link.id}`, query), "Back to link", "quiet")}</p>`}`;
  const header = link
    ? { title: `Clicks on ${displayUrl(link, urls.short)}`, section: "links" as const }
    : {
        title: "Analytics",
        intro: html`Includes clicks on links that have since been deleted. Days and hours are in ${found.time_zone}.${isManager(membershipOf(ctx)) && html` <a href="${pathTo(ctx, "settings")}#${TIME_ZONE}">Change time zone</a>`}`,
        section: "analytics" as const,
      };
  showPage(ctx, { ...header, error, body });
}

/** Returns the path of a page with the clicks of a range that match filters, of which some are empty. */
export function clicksPath(path: string, query: ClicksQuery): string {
  const set = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return set.length > 0 ? `${path}?${new URLSearchParams(set)}` : path;
}

function rangeOf({ days }: Period) {
  return { from: days[0]?.date, to: days.at(-1)?.date };
}

function filtersOf(query: ClicksQuery): [by: ClickProperty, value: string][] {
  return CLICK_PROPERTIES.flatMap((by) => (query[by] === undefined ? [] : [[by, query[by]]]));
}

/** Returns the first and the last day of each preset. A single day is shown by hours. */
function presetsOf(now: number): [name: string, from: string, to: string][] {
  const dayBefore = (days: number) => toDate(now - days * DAY_MS);
  const today = new Date(now);
  const monthDay = (month: number, day: number) =>
    toDate(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + month, day));
  return [
    ["Today", dayBefore(0), dayBefore(0)],
    ["7 days", dayBefore(6), dayBefore(0)],
    ["30 days", dayBefore(29), dayBefore(0)],
    ["90 days", dayBefore(89), dayBefore(0)],
    ["This month", monthDay(0, 1), dayBefore(0)],
    ["Last month", monthDay(-1, 1), monthDay(0, 0)],
    ["12 months", dayBefore(364), dayBefore(0)],
  ];
}

function rangeForm(
  path: string,
  query: ClicksQuery,
  errors: FieldErrors,
  found: AnalyticsView,
  earliest: string,
): Html {
  const filters = filtersOf(query);
  const shown = rangeOf(found);
  // A month can be as long as one of the others.
  const isShown = ([, from, to]: string[]) => from === shown.from && to === shown.to;
  const presets = presetsOf(nowIn(found.time_zone)).filter(
    ([, from]) => filters.length === 0 || from >= earliest,
  );
  const current = presets.find(isShown);
  const links = presets.map((preset) => {
    const [name, from, to] = preset;
    return { name, href: clicksPath(path, { ...query, from, to }), isCurrent: preset === current };
  });
  return html`${tabs("Date range", links)}
<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From", type: "date", value: query.from, error: errors.from })}
${field({ name: "to", label: "To", type: "date", value: query.to, error: errors.to })}
${filters.map(([by, value]) => hidden(by, value))}<button type="submit" class="quiet">Apply</button>
</form>`;
}

/** Renders the filters of a page, each as a link that removes it. */
export function filterChips(path: string, query: ClicksQuery): Html | false {
  const filters = filtersOf(query);
  const { from, to } = query;
  if (filters.length === 0) return false;
  return html`<p class="filter">${filters.map(([by, value]) => {
    const href = clicksPath(path, { ...query, [by]: undefined });
    return html`<a class="badge" href="${href}"><span class="visually-hidden">Remove the filter </span>${SOURCES[by].head}: ${nameOf(by, value)}${icon("x")}</a> `;
  })}<a href="${clicksPath(path, { from, to })}">Clear all<span class="visually-hidden"> filters</span></a></p>`;
}

type TopLinks = {
  /** All clicks, of which the links have shares. */
  total: number;
  path: string;
  shortUrl: string;
  /** What their pages show. */
  query?: ClicksQuery;
  hint?: string | false;
};

/** Renders the links with the most clicks, with their shares of all clicks. */
export function topLinksPanel(
  top: ClickedLink[],
  { total, path, shortUrl, query = {}, hint }: TopLinks,
): Html {
  const rows = top.map(({ link, clicks }) => {
    const name = link.title ?? displayUrl(link, shortUrl);
    return { clicks, name: html`<a href="${clicksPath(`${path}/${link.id}`, query)}">${name}</a>` };
  });
  const title = top.length === 1 ? "Top link by clicks" : `Top ${top.length} links by clicks`;
  return html`<section class="panel group"><div class="title"><h2>${title}</h2>${linkButton(pathWith(path, { archived: "all", sort: "-clicks" }), "All-time top links", "quiet")}</div>${hint && html`<p class="soft">${hint}</p>`}
${shareTable("Link", rows, total)}
</section>`;
}

type ClicksPanel = { title: string; empty: string; more?: Html; previous?: number | undefined };

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const RANGES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

/** Renders clicks as a chart. Those of known bots are named apart. */
export function clicksPanel(
  analytics: AnalyticsView,
  { title, empty, more = html``, previous }: ClicksPanel,
): Html {
  const { clicks, bot_clicks } = analytics;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  const change = describeChange(analytics, previous);
  if (clicks + bot_clicks === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}${change && ` ${change}`}</p></section>`;
  return html`<section class="panel group">${heading}
${figure(clicks, bot_clicks, change)}
${chart(analytics, formatRange(analytics))}
</section>`;
}

function figure(clicks: number, botClicks: number, change: string): Html {
  return html`<p><strong class="figure">${clicks.toLocaleString("en")}</strong> ${clicks === 1 ? "click" : "clicks"}${
    botClicks > 0 && html` <span class="soft">· ${botClicks.toLocaleString("en")} from known bots</span>`
  }${change && html`<br><span class="soft">${change}</span>`}</p>`;
}

type Period = { days: { date: string }[] };

/** Returns the range of some days as text, such as “Nov 1 – 30, 2026”. */
export function formatRange({ days }: Period): string {
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return first && last ? RANGES.formatRange(new Date(first), new Date(last)) : "";
}

function describeChange({ clicks, days, time_zone }: AnalyticsView, previous: number | undefined): string {
  if (previous === undefined) return "";
  const isToday = days.length === 1 && days[0]?.date === toDate(nowIn(time_zone));
  // A day that isn't over can't be compared with a whole one.
  if (isToday) return `${pluralize(previous, "click")} yesterday.`;
  const before = days.length === 1 ? "the day before" : `the ${days.length} days before`;
  if (previous === 0) return clicks === 0 ? "" : `No clicks in ${before}.`;
  const percent = Math.round(((clicks - previous) / previous) * 100);
  const change = percent > 0 ? `+${percent.toLocaleString("en")}` : `${percent}`.replace("-", "−");
  return `${change}% compared with ${before}.`;
}

/** What clicks are counted by: the title of the list, and the heading of its column. */
const SOURCES = {
  referrer: { title: "Referrers", head: "Referrer" },
  country: { title: "Countries", head: "Country" },
  device: { title: "Devices", head: "Device" },
  browser: { title: "Browsers", head: "Browser" },
  operating_system: { title: "Operating systems", head: "System" },
  destination: { title: "Destinations", head: "Destination" },
  utm_source: { title: "UTM sources", head: "UTM source" },
  utm_medium: { title: "UTM mediums", head: "UTM medium" },
  utm_campaign: { title: "UTM campaigns", head: "UTM campaign" },
} as const;

function nameOf(by: ClickProperty, value: string): string {
  if (value === "") return by === "referrer" ? "Direct" : isOptional(by) ? "None" : "Unknown";
  if (by === "device") return capitalized(value);
  // The query of a page may have any text.
  if (by === "country" && /^[A-Z]{2}$/.test(value)) return COUNTRIES.of(value) ?? value;
  return value;
}

const UNKNOWN_COUNTRIES = html`<div><h3>Countries</h3><p class="soft">Countries are unknown until the operator of this service sets <code>MMDB_PATH</code>.</p></div>`;

type Counted = { clicks: number; [property: string]: string | number | null };

type SourcesPanel = {
  /** The page that the names lead to, filtered by them. */
  path: string;
  query: ClicksQuery;
  /** The first day of which clicks can be filtered. */
  earliest: string;
  /** Whether a database of countries is missing, which is said if no country is known. */
  needsCountries: boolean;
};

/** Renders where clicks come from. */
export function sourcesPanel(
  analytics: AnalyticsView,
  { path, query, earliest, needsCountries }: SourcesPanel,
): Html | false {
  const { clicks: total } = analytics;
  if (total === 0) return false;
  const { from = "", to = "" } = rangeOf(analytics);
  const reach = (nowIn(analytics.time_zone) - Date.parse(earliest)) / DAY_MS;
  const lists = CLICK_PROPERTIES.map((by) => {
    const { title, head } = SOURCES[by];
    const counted: Counted[] = analytics[CLICK_LISTS[by]];
    if (by === "country" && needsCountries && counted.every(({ country }) => country === null))
      return UNKNOWN_COUNTRIES;
    if (counted.length === 0) return undefined;
    const rows = counted.map(({ clicks, [by]: value }) => {
      const name = nameOf(by, String(value ?? ""));
      if (to < earliest || query[by] !== undefined) return { clicks, name };
      const range = { from: from < earliest ? earliest : from, to };
      const href = clicksPath(path, { ...query, ...range, [by]: value ?? "" });
      return { clicks, name: html`<a href="${href}">${name}</a>` };
    });
    return html`<div><h3>${title}</h3>${shareTable(head, rows, total)}</div>\n`;
  });
  return html`<section class="panel group"><div class="title"><h2>Where clicks come from</h2></div>
${from < earliest && html`<p class="soft">Filters reach back ${pluralize(Math.floor(reach) + 1, "day")}, to ${RANGES.format(new Date(earliest))}.</p>`}
<div class="tiles places">
${lists}</div>
</section>`;
}

/** Renders clicks by name with a bar of their share of all clicks. */
function shareTable(head: string, rows: { name: Html | string; clicks: number }[], total: number): Html {
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
