import type { Context } from "koa";
import type { Problem } from "../../resources/problem.ts";
import { prefersHtml } from "../people/input.ts";
import { analyticsPage } from "../views/dashboard/clicks.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { shownAs } from "../views/dashboard/links.ts";
import { actorOf, membershipOf } from "./access.ts";
import { again, byField, type Show, showPage } from "./answers.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

/** Where clicks came from: those of one link, and of all. */
export const analytics: Subject = (router, { cores, addresses, allow }) => {
  const { links } = cores;

  const showTotals: Show = (ctx, _error, problem) => show(ctx, undefined, problem);
  const showLink: Show = (ctx, _error, problem) => show(ctx, ctx.params.link_id as string, problem);

  async function show(ctx: Context, linkId: string | undefined, problem: Problem | undefined) {
    const query = problem ? {} : daysAsked(ctx);
    const found = await links.analytics(actorOf(ctx), linkId, query);
    if (!prefersHtml(ctx)) {
      ctx.body = found;
      return;
    }
    const path = sectionPath(membershipOf(ctx).id, "links");
    const { error, errors } = byField(problem);
    const back = linkId === undefined ? path : `${path}/${linkId}`;
    const about =
      linkId === undefined ? "all links" : shownAs(await links.get(actorOf(ctx), linkId), addresses.short);
    const intro = linkId === undefined ? "Those of links that were deleted since are among them." : undefined;
    const typed = problem
      ? (ctx.query as Record<string, string>)
      : { from: found.days[0]?.date, to: found.days.at(-1)?.date };
    const body = analyticsPage({ path: ctx.path, back, typed, errors, analytics: found });
    showPage(ctx, { title: `Clicks of ${about}`, ...(intro && { intro }), section: "links", error }, body);
  }

  router.get(`${ORGANIZATION}/analytics`, allow(), again(showTotals), (ctx) => showTotals(ctx));
  router.get(`${ORGANIZATION}/links/:link_id/analytics`, allow(), again(showLink), (ctx) => showLink(ctx));
};

/** A field of the form that was left empty asks for nothing. */
function daysAsked(ctx: Context): object {
  if (!prefersHtml(ctx)) return ctx.query;
  return Object.fromEntries(Object.entries(ctx.query).filter(([, value]) => value !== ""));
}
