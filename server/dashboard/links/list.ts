import type { Context } from "koa";
import { readQuery } from "../../../resources/http/validate.ts";
import { type LinkPage, listQuery } from "../../../resources/links/list.ts";
import type { LinkCount } from "../../../resources/links/matches.ts";
import { toView } from "../../../resources/links/schema.ts";
import { isPaid } from "../../../resources/plans.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { actorOf, membershipOf, pathTo } from "../access.ts";
import { redisplayForm } from "../forms.ts";
import { queryErrors, type Show, sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { filterOf, linksPage } from "./list-page.ts";
import { undoForm } from "./selection.ts";

const FREE_PLAN_NOTE = "The API is available on Growth and Premium.";

/** Adds the list of links, and counts those that match its filter. */
export const list: RouteModule = (router, { services: { links, showOrganization }, urls, allow }) => {
  async function countMatches(ctx: Context, filter: object, page: LinkPage): Promise<LinkCount> {
    if (page.offset === 0 && page.nextCursor === null) return { links: page.links.length, isExact: true };
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    if (isFiltered) return links.matches.count(actorOf(ctx), filter);
    const { usage } = await showOrganization(membershipOf(ctx).id);
    return { links: usage.links, isExact: true };
  }

  const show: Show = async (ctx, _error, problem) => {
    if (!prefersHtml(ctx)) {
      const { links: page, nextCursor } = await links.list(actorOf(ctx), ctx.state.query);
      return sendJson(ctx, { data: page.map((link) => toView(link, urls.short)), next_cursor: nextCursor });
    }
    const { error, errors } = queryErrors(problem, ["search", "tag"]);
    const shownAt = Date.now();
    const query = problem ? {} : (ctx.query as Record<string, string>);
    const [page, tags] = await Promise.all([
      links.list(actorOf(ctx), { ...(problem ? {} : pagingOf(ctx)), ...filterOf(query) }),
      links.suggestTags(actorOf(ctx)),
    ]);
    const count = await countMatches(ctx, filterOf(query), page);
    const content = linksPage({
      path: pathTo(ctx, "links"),
      query,
      errors,
      shortUrl: urls.short,
      count,
      tags,
      shownAt,
      ...page,
    });
    const intro = isPaid(membershipOf(ctx).plan) ? undefined : FREE_PLAN_NOTE;
    showPage(ctx, {
      title: "Links",
      ...(intro && { intro }),
      section: "links",
      error,
      undo: undoForm(ctx),
      ...content,
    });
  };
  router.get(`${ORGANIZATION}/links`, allow(), readQuery(listQuery), redisplayForm(show), (ctx) => show(ctx));
};

/** Returns what a query says beside the filter; empty fields of the form say nothing. */
function pagingOf(ctx: Context): object {
  const { done: _, undo: __, signature: ___, ...fields } = ctx.state.query;
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
