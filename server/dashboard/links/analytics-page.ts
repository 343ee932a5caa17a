import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { ClickedLink } from "../../../resources/links/types.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { actorOf, pathTo } from "../access.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show, sendJson, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { clicksPanel, formatRange, readPrevious, shareTable, toDate } from "./analytics.ts";
import { displayUrl } from "./list-page.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const TOP_LINKS = 5;

export const analytics: RouteModule = (router, options) => {
  const { allow } = options;
  const show: Show = (ctx, _error, problem) => showAnalytics(ctx, options, ctx.params.link_id, problem);
  for (const path of [`${ORGANIZATION}/analytics`, `${ORGANIZATION}/links/:link_id/analytics`]) {
    router.get(path, allow(), redisplayForm(show), (ctx) => show(ctx));
  }
};

async function showAnalytics(
  ctx: Context,
  { services: { links }, urls, settings }: DashboardOptions,
  linkId: string | undefined,
  problem: Problem | undefined,
): Promise<void> {
  const caller = actorOf(ctx);
  const found = await links.analytics(caller, linkId, problem ? {} : rangeOf(ctx));
  if (!prefersHtml(ctx)) return sendJson(ctx, found);
  const shown = { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const [link, previous, top] = await Promise.all([
    linkId === undefined ? undefined : links.get(caller, linkId),
    readPrevious(links, caller, linkId, found),
    linkId === undefined ? links.topLinks(caller, shown, TOP_LINKS) : [],
  ]);
  const path = pathTo(ctx, "links");
  const { error, errors } = queryErrors(problem, ["from", "to"]);
  const range = problem ? (ctx.query as Record<string, string>) : shown;
  const panel = clicksPanel(found, {
    title: formatRange(found),
    empty: "No clicks in this date range.",
    previous,
    needsCountries: settings.MMDB_PATH === undefined,
  });
  const body = html`${rangeForm(ctx.path, range, errors, found)}
${panel}
${top.length > 0 && topLinksPanel(top, found.clicks, path, urls.short)}
${link && html`<p>${linkButton(`${path}/${link.id}`, "Back", "quiet")}</p>`}`;
  const header = link
    ? { title: `Clicks on ${displayUrl(link, urls.short)}`, section: "links" as const }
    : {
        title: "Analytics",
        intro: "Clicks on all links, also on those that have since been deleted.",
        section: "analytics" as const,
      };
  showPage(ctx, { ...header, error, body });
}

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

function rangeForm(path: string, range: Range, errors: FieldErrors, { days }: AnalyticsView): Html {
  const now = Date.now();
  const endsToday = days.at(-1)?.date === toDate(now);
  const presets = PRESETS.map(([name, length]) => {
    const from = toDate(now - (length - 1) * DAY_MS);
    const isCurrent = endsToday && days.length === length;
    return html`<li><a href="${path}?from=${from}"${isCurrent && html` aria-current="page"`}>${name}</a></li>
`;
  });
  return html`<nav class="tabs" aria-label="Date range"><ul>
${presets}</ul></nav>
<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From (UTC)", type: "date", value: range.from, error: errors.from })}
${field({ name: "to", label: "To (UTC)", type: "date", value: range.to, error: errors.to })}
<button type="submit" class="quiet">Apply</button>
</form>`;
}

/** Renders the links with the most clicks, with their shares of all clicks. */
export function topLinksPanel(top: ClickedLink[], total: number, path: string, shortUrl: string): Html {
  const rows = top.map(({ link, clicks }) => ({
    name: link.title ?? displayUrl(link, shortUrl),
    clicks,
    link,
  }));
  const render = ({ name, link }: (typeof rows)[number]) => html`<a href="${path}/${link.id}">${name}</a>`;
  return html`<section class="panel group"><h2>Top links</h2>
${shareTable("Link", rows, total, render)}
</section>`;
}
