import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { chart } from "../../ui/chart.ts";
import { field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import { actorOf, pathTo } from "../access.ts";
import { type FieldErrors, queryErrors, redisplayForm, type Show, sendJson, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { displayUrl } from "./list-page.ts";

export const analytics: RouteModule = (router, options) => {
  const { allow } = options;
  const show: Show = (ctx, _error, problem) => showAnalytics(ctx, options, ctx.params.link_id, problem);
  for (const path of [`${ORGANIZATION}/analytics`, `${ORGANIZATION}/links/:link_id/analytics`]) {
    router.get(path, allow(), redisplayForm(show), (ctx) => show(ctx));
  }
};

async function showAnalytics(
  ctx: Context,
  { services: { links }, urls }: DashboardOptions,
  linkId: string | undefined,
  problem: Problem | undefined,
): Promise<void> {
  const found = await links.analytics(actorOf(ctx), linkId, problem ? {} : rangeOf(ctx));
  if (!prefersHtml(ctx)) return sendJson(ctx, found);
  const link = linkId === undefined ? undefined : await links.get(actorOf(ctx), linkId);
  const path = pathTo(ctx, "links");
  const { error, errors } = queryErrors(problem, ["from", "to"]);
  const range = problem
    ? (ctx.query as Record<string, string>)
    : { from: found.days[0]?.date, to: found.days.at(-1)?.date };
  const body = analyticsPage({
    path: ctx.path,
    backPath: link ? `${path}/${link.id}` : path,
    range,
    errors,
    analytics: found,
  });
  const header = link
    ? { title: `Clicks on ${displayUrl(link, urls.short)}` }
    : { title: "Clicks on all links", intro: "Includes links that have since been deleted." };
  showPage(ctx, { ...header, section: "links", error, body });
}

function rangeOf(ctx: Context): object {
  if (!prefersHtml(ctx)) return ctx.query;
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== ""));
}

type ClicksPanel = {
  title: string;
  empty: string;
  more?: Html;
  showSources?: boolean;
};

type Source = { name: string; clicks: number };

const COUNTRIES = new Intl.DisplayNames(["en"], { type: "region" });
const DATES = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

/** Renders clicks as a chart, with their referrers and countries. Known bots don't count as clicks. */
export function clicksPanel(
  analytics: AnalyticsView,
  { title, empty, more = html``, showSources = true }: ClicksPanel,
): Html {
  const { total, bots, days } = analytics;
  const heading = html`<div class="title"><h2>${title}</h2>${more}</div>`;
  if (total + bots === 0)
    return html`<section class="panel group">${heading}<p class="soft">${empty}</p></section>`;
  return html`<section class="panel group">${heading}
<p><strong class="figure">${total.toLocaleString("en")}</strong> ${total === 1 ? "click" : "clicks"}${
    bots > 0 && html` <span class="soft">· ${bots.toLocaleString("en")} from known bots (not included)</span>`
  }</p>
${chart(days)}
${total > 0 && showSources && sources(analytics)}
</section>`;
}

function sources({ total, referrers, countries }: AnalyticsView): Html {
  const byReferrer = referrers.map(({ referrer, clicks }) => ({ name: referrer ?? "Direct", clicks }));
  const byCountry = countries.map(({ country, clicks }) => ({ name: countryName(country), clicks }));
  const hasCountries = countries.some(({ country }) => country !== null);
  return html`<div class="tiles places">
<div><h3>Referrers</h3>${sourceTable("Referrer", byReferrer, total)}</div>
${hasCountries && html`<div><h3>Countries</h3>${sourceTable("Country", byCountry, total)}</div>`}
</div>`;
}

function sourceTable(head: string, rows: Source[], total: number): Html {
  return html`<div class="shares">${table(
    head,
    {
      [head]: ({ name }) => name,
      Clicks: ({ clicks }) => html`<span class="number">${clicks.toLocaleString("en")}</span>`,
      Share: ({ clicks }) => shareBar(clicks / total),
    },
    rows,
  )}</div>`;
}

function shareBar(share: number): Html {
  const percent = share > 0 && share < 0.01 ? "<1%" : `${Math.round(share * 100)}%`;
  return html`<span class="share"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width="${Math.max(1, share * 100).toFixed(1)}" height="8"/></svg>${percent}</span>`;
}

function countryName(country: string | null): string {
  if (country === null) return "Unknown";
  return COUNTRIES.of(country) ?? country;
}

type AnalyticsPage = {
  path: string;
  /** The path of the page that the Back button returns to. */
  backPath: string;
  range: { from?: string | undefined; to?: string | undefined };
  errors: FieldErrors;
  analytics: AnalyticsView;
};

function analyticsPage({ path, backPath, range, errors, analytics }: AnalyticsPage): Html {
  return html`<form method="get" action="${path}" class="row">
${field({ name: "from", label: "From", type: "date", value: range.from, error: errors.from })}
${field({ name: "to", label: "To", type: "date", value: range.to, error: errors.to })}
<button type="submit" class="quiet">Apply</button>
</form>
${clicksPanel(analytics, { title: formatRange(analytics), empty: "No clicks in this date range." })}
<p>${linkButton(backPath, "Back", "quiet")}</p>`;
}

function formatRange({ days }: AnalyticsView): string {
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return first && last ? DATES.formatRange(new Date(first), new Date(last)) : "";
}
