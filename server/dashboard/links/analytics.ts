import type { Context } from "koa";
import type { Problem } from "../../../resources/http/problem.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, membershipOf } from "../access.ts";
import { redisplayForm, type Show, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { analyticsPage } from "./clicks-panel.ts";
import { displayUrl } from "./list-page.ts";
import { queryErrors } from "./query-errors.ts";

/** Registers the analytics of one link and of all links. */
export const analytics: RouteModule = (router, options) => {
  const { allow } = options;
  const showTotals: Show = (ctx, _error, problem) => showAnalytics(ctx, options, undefined, problem);
  const showLink: Show = (ctx, _error, problem) =>
    showAnalytics(ctx, options, ctx.params.link_id as string, problem);
  router.get(`${ORGANIZATION}/analytics`, allow(), redisplayForm(showTotals), (ctx) => showTotals(ctx));
  router.get(`${ORGANIZATION}/links/:link_id/analytics`, allow(), redisplayForm(showLink), (ctx) =>
    showLink(ctx),
  );
};

async function showAnalytics(
  ctx: Context,
  { services: { links }, urls }: DashboardOptions,
  linkId: string | undefined,
  problem: Problem | undefined,
): Promise<void> {
  const found = await links.analytics(actorOf(ctx), linkId, problem ? {} : rangeOf(ctx));
  if (!prefersHtml(ctx)) {
    ctx.body = found;
    return;
  }
  const link = linkId === undefined ? undefined : await links.get(actorOf(ctx), linkId);
  const path = sectionPath(membershipOf(ctx).id, "links");
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
  showPage(ctx, { ...header, section: "links", error }, body);
}

/** Returns the query, without the fields that a form left empty. */
function rangeOf(ctx: Context): object {
  if (!prefersHtml(ctx)) return ctx.query;
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== ""));
}
