import type { Context } from "koa";
import { entityTag, preconditionOf } from "../../../resources/http/etag.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { readQuery } from "../../../resources/http/query.ts";
import { toView } from "../../../resources/links/schema.ts";
import { listQuery } from "../../../resources/links/service.ts";
import type { Link } from "../../../resources/links/types.ts";
import { isPaid } from "../../../resources/plans.ts";
import { type Input, prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { actorOf, membershipOf, signedInUserOf } from "../access.ts";
import { creatorOf } from "../creator.ts";
import {
  type Done,
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { linkDeletionForm, linkForm } from "./form.ts";
import { toFormValues, toInput, valuesOf } from "./form-fields.ts";
import { displayUrl, linksPage } from "./list-page.ts";
import { linkPage } from "./page.ts";
import { queryErrors } from "./query-errors.ts";

const LINKS = `${ORGANIZATION}/links`;
const LINK = `${LINKS}/:link_id`;

const INTRO = "Create and manage your organization's short links.";
const FREE_PLAN_NOTE = "The API is available on Growth and Premium.";
const EDIT_CONFLICT =
  "This link was changed while you were editing it. Compare the values: if you save again, yours replace the current ones.";

/** Registers the pages and JSON endpoints of links, which every member can use on every plan. */
export const links: RouteModule = (router, options) => {
  listRoutes(router, options);
  createRoutes(router, options);
  detailRoutes(router, options);
  updateRoutes(router, options);
  deleteRoutes(router, options);
};

const listRoutes: RouteModule = (router, { services: { links }, urls, allow }) => {
  const show: Show = async (ctx, _error, problem) => {
    if (!prefersHtml(ctx)) {
      const { links: page, nextCursor } = await links.list(actorOf(ctx), ctx.state.query);
      ctx.body = { data: page.map((link) => toView(link, urls.short)), next_cursor: nextCursor };
      return;
    }
    const { error, errors } = queryErrors(problem, ["search", "tag", "archived"]);
    const page = await links.list(actorOf(ctx), problem ? { archived: false } : toFilter(ctx));
    const body = linksPage({
      path: pathTo(ctx),
      query: problem ? {} : (ctx.query as Record<string, string>),
      errors,
      shortUrl: urls.short,
      csrf: signedInUserOf(ctx).csrf,
      ...page,
    });
    const intro = isPaid(membershipOf(ctx).plan) ? INTRO : `${INTRO} ${FREE_PLAN_NOTE}`;
    showPage(ctx, { title: "Links", intro, section: "links", error }, body);
  };
  router.get(LINKS, allow(), readQuery(listQuery), redisplayForm(show), (ctx) => show(ctx));
};

const createRoutes: RouteModule = (router, { services: { links }, urls, allow }) => {
  const showForm: Show = (ctx, _error, problem) => showLinkForm(ctx, urls.short, problem);
  router.get(`${LINKS}/new`, allow(), (ctx) => showForm(ctx));
  router.post(LINKS, allow(), redisplayForm(showForm), async (ctx) => {
    const fields = await formFieldsOf(ctx);
    const link = await links.create(actorOf(ctx), isForm(ctx) ? toInput(fields) : fields);
    respondWithLink(ctx, link, urls.short, { done: "link-created", status: 201 });
  });
};

const detailRoutes: RouteModule = (router, { services, urls, storage, allow }) => {
  router.get(LINK, allow(), async (ctx) => {
    const link = await findLink(ctx, services);
    if (!prefersHtml(ctx)) return respondWithLink(ctx, link, urls.short);
    const [analytics, creator] = await Promise.all([
      services.links.analytics(actorOf(ctx), link.id, {}),
      creatorOf(storage, link.organizationId, link),
    ]);
    const { actions, body } = linkPage({
      link,
      path: pathTo(ctx, link),
      shortUrl: urls.short,
      creator,
      analytics,
      csrf: signedInUserOf(ctx).csrf,
    });
    const title = link.title ?? displayUrl(link, urls.short);
    showPage(ctx, { title, section: "links", actions }, body);
  });
};

const updateRoutes: RouteModule = (router, { services, urls, allow }) => {
  const showForm: Show = async (ctx, _error, problem) =>
    showLinkForm(ctx, urls.short, problem, await findLink(ctx, services));
  const update = async (ctx: Context) => {
    const before = await findLink(ctx, services);
    const fields = await formFieldsOf(ctx);
    const { input, precondition } = isForm(ctx)
      ? changesIn(fields, before)
      : { input: fields, precondition: preconditionOf(ctx) };
    const after = await services.links.update(actorOf(ctx), before.id, input, precondition);
    respondWithLink(ctx, after, urls.short, { done: noticeOf(before, after) });
  };
  router.get(`${LINK}/edit`, allow(), (ctx) => showForm(ctx));
  router.patch(LINK, allow(), update);
  router.post(LINK, allow(), redisplayForm(showForm), update);
};

const deleteRoutes: RouteModule = (router, { services, urls, allow }) => {
  const remove = async (ctx: Context) => {
    await services.links.remove(actorOf(ctx), ctx.params.link_id as string, preconditionOf(ctx));
    respondToChange(ctx, { to: pathTo(ctx), done: "link-deleted" });
  };
  router.delete(LINK, allow(), remove);
  router.post(`${LINK}/delete`, allow(), remove);
  router.get(`${LINK}/delete`, allow(), async (ctx) => {
    const link = await findLink(ctx, services);
    const body = linkDeletionForm({
      name: displayUrl(link, urls.short),
      path: pathTo(ctx, link),
      isArchived: link.archived,
      csrf: signedInUserOf(ctx).csrf,
    });
    showPage(ctx, { title: "Delete this link?", section: "links" }, body);
  });
};

/** Shows the form of a new link, or of the given one; after an error, with the submitted values. */
async function showLinkForm(ctx: Context, shortUrl: string, problem?: Problem, link?: Link): Promise<void> {
  const { error, errors } = splitFieldErrors(problem);
  const hasConflict = problem?.code === "precondition_failed";
  const body = linkForm({
    path: pathTo(ctx, link),
    values: problem ? toFormValues(await formFieldsOf(ctx)) : link ? valuesOf(link) : toFormValues({}),
    version: link?.version,
    current: link && hasConflict ? valuesOf(link) : undefined,
    errors,
    shortUrl,
    csrf: signedInUserOf(ctx).csrf,
  });
  const title = link ? `Edit ${displayUrl(link, shortUrl)}` : "New link";
  showPage(ctx, { title, section: "links", error: hasConflict ? EDIT_CONFLICT : error }, body);
}

function findLink(ctx: Context, { links }: DashboardOptions["services"]): Promise<Link> {
  return links.get(actorOf(ctx), ctx.params.link_id as string);
}

/** Redirects a browser to the page of the link, and sends the link to an API client. */
function respondWithLink(
  ctx: Context,
  link: Link,
  shortUrl: string,
  { done, status = 200 }: { done?: Done; status?: number } = {},
): void {
  if (!prefersHtml(ctx)) ctx.set("ETag", entityTag(link.version));
  respondToChange(ctx, {
    to: pathTo(ctx, link),
    ...(done && { done }),
    status,
    body: toView(link, shortUrl),
  });
}

/** Returns the path of a link's page, or of the list. */
function pathTo(ctx: Context, link?: Link): string {
  const path = sectionPath(membershipOf(ctx).id, "links");
  return link ? `${path}/${link.id}` : path;
}

/** Returns the changes in a submitted form, on the condition that the link still has the version that the form showed. */
function changesIn({ version, ...fields }: Input, link: Link) {
  const isShownVersion = (current: number) => String(current) === version;
  return {
    input: toInput(fields, valuesOf(link)),
    precondition: version === undefined ? undefined : isShownVersion,
  };
}

/** Converts the query of the filter form: empty fields don't filter, and archived links are hidden by default. */
function toFilter(ctx: Context): object {
  const { done: _, archived = false, ...fields } = ctx.state.query;
  const filled = Object.entries(fields).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(filled), ...(archived !== "all" && { archived }) };
}

function noticeOf(before: Link, after: Link): Done {
  if (before.archived === after.archived) return "link-saved";
  return after.archived ? "link-archived" : "link-restored";
}
