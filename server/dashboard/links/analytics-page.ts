import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView, ClicksFromView } from "../../../resources/links/analytics.ts";
import type { ClickedLink, ClickOrigin } from "../../../resources/links/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { field, hidden, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith, tabs } from "../../ui/table.ts";
import { actorOf, pathTo } from "../access.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show, withoutEmpty } from "../forms.ts";
import { sendJson, showPage } from "../responses.ts";
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
  const [readClicks, readTop] = isFiltered
    ? [links.clicksFrom, links.topLinksFrom]
    : [links.analytics, links.topLinks];
  const read = (range: object) => readClicks(caller, linkId, { ...query, ...range });
  const found = await read({});
  if (!isPage) return sendJson(ctx, found);

  const range = { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const [previous, top, link] = await Promise.all([
    readPrevious(found, read),
    linkId === undefined ? readTop(caller, { ...query, ...range }, TOP_LINKS) : [],
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
${origin && originChip(pathWith(ctx.path, range), origin)}
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

function originChip(path: string, origin: ClickOrigin): Html {
  return html`<p class="filter"><span class="badge">${describeOrigin(origin)}</span> <a href="${path}">Clear<span class="visually-hidden"> the filter</span></a></p>`;
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
  { days }: Pick<AnalyticsView, "days"> | ClicksFromView,
  origin: ClickOrigin | undefined,
): Html {
  const filter = origin ? originQuery(origin) : {};
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
