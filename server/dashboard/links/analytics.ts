import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView, ClicksFromView } from "../../../resources/links/analytics.ts";
import {
  CLICK_LISTS,
  CLICK_PROPERTIES,
  type ClickedLink,
  type ClickOrigin,
} from "../../../resources/links/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { chart } from "../../ui/chart.ts";
import { field, hidden, linkButton, meter } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith, table, tabs } from "../../ui/table.ts";
import { capitalized, pluralize, toDate } from "../../ui/text.ts";
import { actorOf, pathTo } from "../access.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show, withoutEmpty } from "../forms.ts";
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

async function showAnalytics(
  ctx: Context,
  { services: { links }, urls, settings }: DashboardOptions,
  problem: Problem | undefined,
): Promise<void> {
  const linkId = ctx.params.link_id as string | undefined;
  const caller = actorOf(ctx);
  const isPage = prefersHtml(ctx);
  const query = problem ? {} : isPage ? withoutEmpty(ctx.query) : ctx.query;
  const isFiltered = ["by", "value"].some((name) => Object.hasOwn(query, name));
  const readClicks = isFiltered ? links.clicksFrom : links.analytics;
  const read = (range: object) => readClicks(caller, linkId, { ...query, ...range });
  const found = await read({});
  if (!isPage) return sendJson(ctx, found);

  const range = { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const [previous, top, link] = await Promise.all([
    readPrevious(found, read),
    linkId === undefined ? links.topLinks(caller, { ...query, ...range }, TOP_LINKS) : [],
    linkId === undefined ? undefined : links.get(caller, linkId),
  ]);
  const origin = "by" in found ? found : undefined;
  const panel =
    "by" in found
      ? originPanel(found, previous)
      : clicksPanel(found, {
          title: formatRange(found),
          empty: "No clicks in this date range.",
          previous,
          needsCountries: settings.MMDB_PATH === undefined,
        });
  const { error, errors } = queryErrors(problem, ["from", "to"]);
  const typed = problem ? (ctx.query as Record<string, string>) : range;
  const hint = origin && "Among the 100 links with the most clicks in this date range.";
  const body = html`${rangeForm(ctx.path, typed, errors, found, origin)}
${origin && html`<p class="filter"><span class="badge">${SOURCES[origin.by].head}: ${nameOf(origin)}</span> <a href="${pathWith(ctx.path, range)}">Clear<span class="visually-hidden"> the filter</span></a></p>`}
${panel}
${top.length > 0 && topLinksPanel(top, found.clicks, pathTo(ctx, "links"), urls.short, hint)}
${link && html`<p>${linkButton(`${pathTo(ctx, "links")}/${link.id}`, "Back", "quiet")}</p>`}`;
  const header = link
    ? { title: `Clicks on ${displayUrl(link, urls.short)}`, section: "links" as const }
    : {
        title: "Analytics",
        intro: "Includes clicks on links that have since been deleted.",
        section: "analytics" as const,
      };
  showPage(ctx, { ...header, error, body });
}

// The number of days until today. A single day is shown by hours.
const PRESETS = [
  ["Today", 1],
  ["7 days", 7],
  ["30 days", 30],
  ["90 days", 90],
] as const;

type Range = { from?: string | undefined; to?: string | undefined };

function rangeForm(
  path: string,
  range: Range,
  errors: FieldErrors,
  { days }: Period,
  origin: ClickOrigin | undefined,
): Html {
  const filter: Record<string, string> = origin ? originQuery(origin) : {};
  const now = Date.now();
  const endsToday = days.at(-1)?.date === toDate(now);
  const presets = PRESETS.map(([name, length]) => ({
    name,
    href: pathWith(path, { from: toDate(now - (length - 1) * DAY_MS), ...filter }),
    isCurrent: endsToday && days.length === length,
  }));
  return html`${tabs("Date range", presets)}
<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From (UTC)", type: "date", value: range.from, error: errors.from })}
${field({ name: "to", label: "To (UTC)", type: "date", value: range.to, error: errors.to })}
${Object.entries(filter).map(([name, value]) => hidden(name, value))}<button type="submit" class="quiet">Apply</button>
</form>`;
}

/** Renders the links with the most clicks, with their shares of all clicks. */
export function topLinksPanel(
  top: ClickedLink[],
  total: number,
  path: string,
  shortUrl: string,
  hint?: string,
): Html {
  const rows = top.map(({ link, clicks }) => {
    const name = link.title ?? displayUrl(link, shortUrl);
    return { clicks, name: html`<a href="${path}/${link.id}">${name}</a>` };
  });
  const title = top.length === 1 ? "Top link by clicks" : `Top ${top.length} links by clicks`;
  return html`<section class="panel group"><div class="title"><h2>${title}</h2>${linkButton(pathWith(path, { archived: "all", sort: "-clicks" }), "All links by total clicks", "quiet")}</div>${hint && html`<p class="soft">${hint}</p>`}
${shareTable("Link", rows, total)}
</section>`;
}

type ClicksPanel = {
  title: string;
  empty: string;
  more?: Html;
  showSources?: boolean;
  previous?: number | undefined;
  /** Whether a database of countries is missing, which is said if no country is known. */
  needsCountries?: boolean;
  /** The path of the page that the names of sources lead to, filtered by them, if it isn't this one. */
  path?: string;
};

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const RANGES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

/** Renders clicks as a chart, with where they come from. Those of known bots are named apart. */
export function clicksPanel(analytics: AnalyticsView, panel: ClicksPanel): Html {
  const { clicks, bot_clicks } = analytics;
  const { title, empty, more = html``, showSources = true, previous } = panel;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  const change = describeChange(analytics, previous);
  if (clicks + bot_clicks === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}${change && ` ${change}`}</p></section>`;
  return html`<section class="panel group">${heading}
${figure(clicks, bot_clicks, change)}
${chart(analytics, formatRange(analytics))}
${clicks > 0 && showSources && sources(analytics, panel)}
</section>`;
}

function figure(clicks: number, botClicks: number, change: string): Html {
  return html`<p><strong class="figure">${clicks.toLocaleString("en")}</strong> ${clicks === 1 ? "click" : "clicks"}${
    botClicks > 0 && html` <span class="soft">· ${botClicks.toLocaleString("en")} from known bots</span>`
  }${change && html`<br><span class="soft">${change}</span>`}</p>`;
}

/** Renders the clicks of one origin by day, and says what isn't known of them. */
function originPanel(found: ClicksFromView, previous: number | undefined): Html {
  const { clicks, days } = found;
  const change = describeChange(found, previous);
  const range = formatRange(found);
  const clicked = { days: days.map((day) => ({ ...day, bot_clicks: 0 })) };
  return html`<section class="panel group"><div class="title"><h2>${range}</h2></div>
${figure(clicks, 0, change)}
${clicks > 0 && days.length > 1 && chart(clicked, range)}
<p class="soft">With a filter, you see clicks by day. Hours, known bots and the other breakdowns aren’t available.</p>
</section>`;
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

function formatRange({ days }: Period): string {
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return first && last ? RANGES.formatRange(new Date(first), new Date(last)) : "";
}

function describeChange({ clicks, days }: Period & { clicks: number }, previous: number | undefined): string {
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

/** What clicks are counted by: the title of the list, and the heading of its column. */
const SOURCES = {
  referrer: { title: "Referrers", head: "Referrer" },
  country: { title: "Countries", head: "Country" },
  device: { title: "Devices", head: "Device" },
  browser: { title: "Browsers", head: "Browser" },
  operating_system: { title: "Operating systems", head: "System" },
  destination: { title: "Destinations", head: "Destination" },
} as const;

function nameOf({ by, value }: ClickOrigin): string {
  if (value === null) return by === "referrer" ? "Direct" : "Unknown";
  if (by === "device") return capitalized(value);
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
    const { title, head } = SOURCES[by];
    const counted: Counted[] = analytics[CLICK_LISTS[by]];
    if (by === "country" && counted.every(({ country }) => country === null))
      return needsCountries && UNKNOWN_COUNTRIES;
    if (by === "destination" && counted.length === 0) return undefined;
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
function originQuery({ by, value }: ClickOrigin): { by: string; value: string } {
  return { by, value: value ?? "" };
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
