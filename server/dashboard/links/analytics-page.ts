import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView, ClicksFromView } from "../../../resources/links/analytics.ts";
import type { ClickedLink, ClickOrigin } from "../../../resources/links/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import { actorOf, pathTo } from "../access.ts";
import { redisplayForm } from "../forms.ts";
import { type FieldErrors, queryErrors, type Show, sendJson, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import {
  clicksPanel,
  describeOrigin,
  formatRange,
  originPanel,
  originQuery,
  readPrevious,
  shareTable,
  toDate,
} from "./analytics.ts";
import { displayUrl } from "./list-page.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const TOP_LINKS = 10;

export const analytics: RouteModule = (router, options) => {
  const { allow } = options;
  const show: Show = (ctx, _error, problem) => showAnalytics(ctx, options, ctx.params.link_id, problem);
  for (const path of [`${ORGANIZATION}/analytics`, `${ORGANIZATION}/links/:link_id/analytics`]) {
    router.get(path, allow(), redisplayForm(show), (ctx) => show(ctx));
  }
};

async function showAnalytics(
  ctx: Context,
  options: DashboardOptions,
  linkId: string | undefined,
  problem: Problem | undefined,
): Promise<void> {
  const { links } = options.services;
  const query = problem ? {} : rangeOf(ctx);
  const isFiltered = ORIGIN_FIELDS.some((name) => Object.hasOwn(query, name));
  const caller = actorOf(ctx);
  if (!prefersHtml(ctx)) {
    const read = isFiltered ? links.clicksFrom : links.analytics;
    return sendJson(ctx, await read(caller, linkId, query));
  }
  const link = linkId === undefined ? undefined : await links.get(caller, linkId);
  const { error, errors } = queryErrors(problem, ["from", "to"]);
  const show = isFiltered ? clicksFromOrigin : allClicks;
  const { found, content, origin } = await show(ctx, options, linkId, query);
  const shown = { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const range = problem ? (ctx.query as Record<string, string>) : shown;
  const body = html`${rangeForm(ctx.path, range, errors, found, origin)}
${origin && originChip(pathWith(ctx.path, shown), origin)}
${content}
${link && html`<p>${linkButton(`${pathTo(ctx, "links")}/${link.id}`, "Back", "quiet")}</p>`}`;
  const header = link
    ? { title: `Clicks on ${displayUrl(link, options.urls.short)}`, section: "links" as const }
    : {
        title: "Analytics",
        intro: "Includes clicks on links that have since been deleted.",
        section: "analytics" as const,
      };
  showPage(ctx, { ...header, error, body });
}

type Shown = { found: ClicksFromView | AnalyticsView; content: Html; origin?: ClickOrigin };
type ShowClicks = (
  ctx: Context,
  options: DashboardOptions,
  linkId: string | undefined,
  query: object,
) => Promise<Shown>;

const allClicks: ShowClicks = async (ctx, { services: { links }, urls, settings }, linkId, query) => {
  const caller = actorOf(ctx);
  const found = await links.analytics(caller, linkId, query);
  const shown = { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const [previous, top] = await Promise.all([
    readPrevious(found, (range) => links.analytics(caller, linkId, range)),
    linkId === undefined ? links.topLinks(caller, shown, TOP_LINKS) : [],
  ]);
  const panel = clicksPanel(found, {
    title: formatRange(found),
    empty: "No clicks in this date range.",
    previous,
    needsCountries: settings.MMDB_PATH === undefined,
    path: ctx.path,
  });
  const content = html`${panel}
${top.length > 0 && topLinksPanel(top, found.clicks, pathTo(ctx, "links"), urls.short)}`;
  return { found, content };
};

const clicksFromOrigin: ShowClicks = async (ctx, { services: { links }, urls }, linkId, query) => {
  const caller = actorOf(ctx);
  const found = await links.clicksFrom(caller, linkId, query);
  const [previous, top] = await Promise.all([
    readPrevious(found, (range) => links.clicksFrom(caller, linkId, { ...query, ...range })),
    linkId === undefined ? links.topLinksFrom(caller, query, TOP_LINKS) : [],
  ]);
  const hint = "Among the 100 links with the most clicks in this date range.";
  const content = html`${originPanel(found, previous)}
${top.length > 0 && topLinksPanel(top, found.clicks, pathTo(ctx, "links"), urls.short, hint)}`;
  return { found, content, origin: found };
};

function originChip(path: string, origin: ClickOrigin): Html {
  return html`<p class="filter"><span class="badge">${describeOrigin(origin)}</span> <a href="${path}">Clear<span class="visually-hidden"> the filter</span></a></p>`;
}

const ORIGIN_FIELDS = ["by", "value"];

/** Returns the query, in a browser without the empty fields of its form. */
function rangeOf(ctx: Context): object {
  if (!prefersHtml(ctx)) return ctx.query;
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== ""));
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
  { days }: Shown["found"],
  origin: ClickOrigin | undefined,
): Html {
  const filter = origin ? originQuery(origin) : {};
  const now = Date.now();
  const endsToday = days.at(-1)?.date === toDate(now);
  const presets = PRESETS.map(([name, length]) => {
    const from = toDate(now - (length - 1) * DAY_MS);
    const isCurrent = endsToday && days.length === length;
    return html`<li><a href="${pathWith(path, { from, ...filter })}"${isCurrent && html` aria-current="page"`}>${name}</a></li>
`;
  });
  return html`<nav class="tabs" aria-label="Date range"><ul>
${presets}</ul></nav>
<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From (UTC)", type: "date", value: range.from, error: errors.from })}
${field({ name: "to", label: "To (UTC)", type: "date", value: range.to, error: errors.to })}
${Object.entries(filter).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<button type="submit" class="quiet">Apply</button>
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
  const rows = top.map(({ link, clicks }) => ({
    name: link.title ?? displayUrl(link, shortUrl),
    clicks,
    link,
  }));
  const title = top.length === 1 ? "Top link by clicks" : `Top ${top.length} links by clicks`;
  const render = ({ name, link }: (typeof rows)[number]) => html`<a href="${path}/${link.id}">${name}</a>`;
  return html`<section class="panel group"><div class="title"><h2>${title}</h2>${linkButton(pathWith(path, { archived: "all", sort: "-clicks" }), "All links by total clicks", "quiet")}</div>${hint && html`<p class="soft">${hint}</p>`}
${shareTable("Link", rows, total, render)}
</section>`;
}
