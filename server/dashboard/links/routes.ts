import type { Context } from "koa";
import { entityTag, preconditionOf } from "../../resources/links/entity-tag.ts";
import { listQuery } from "../../resources/links/links.ts";
import { toView } from "../../resources/links/schema.ts";
import { isPaid } from "../../resources/plans.ts";
import type { Link } from "../../resources/ports.ts";
import type { Problem } from "../../resources/problem.ts";
import { readQuery } from "../../resources/query.ts";
import { type Input, prefersHtml } from "../people/input.ts";
import { sectionPath } from "../views/dashboard/layout.ts";
import { linkPage } from "../views/dashboard/link.ts";
import { linkDeletionForm, linkForm } from "../views/dashboard/link-form.ts";
import { linksPage, shownAs } from "../views/dashboard/links.ts";
import { actorOf, membershipOf, personOf } from "./access.ts";
import { again, answerDone, byField, type Done, fieldsOf, isForm, type Show, showPage } from "./answers.ts";
import { formOf, toInput, typedInto } from "./link-fields.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const PATH = `${ORGANIZATION}/links`;
const ONE = `${PATH}/:link_id`;

const INTRO = "Short addresses that lead where you want. Everybody in the organization manages them.";
const ON_FREE = "On the Free plan you do that here; the API needs Growth or Premium.";

/** Links: every member makes, finds, changes and ends them, on every plan. */
export const links: Subject = (router, { cores, addresses, storage, allow }) => {
  const { links } = cores;
  const shortUrl = addresses.short;
  const find = (ctx: Context) => links.get(actorOf(ctx), ctx.params.link_id as string);

  const list: Show = async (ctx, _error, problem) => {
    if (!prefersHtml(ctx)) {
      const { links: page, nextCursor } = await links.list(actorOf(ctx), ctx.state.query);
      ctx.body = { data: page.map((link) => toView(link, shortUrl)), next_cursor: nextCursor };
      return;
    }
    const { error, errors } = byField(problem);
    const found = await links.list(actorOf(ctx), problem ? { archived: false } : asFilter(ctx));
    const body = linksPage({
      path: pathTo(ctx),
      query: problem ? {} : (ctx.query as Record<string, string>),
      errors,
      shortUrl,
      csrf: personOf(ctx).csrf,
      ...found,
    });
    const intro = isPaid(membershipOf(ctx).plan) ? INTRO : `${INTRO} ${ON_FREE}`;
    showPage(ctx, { title: "Links", intro, section: "links", error }, body);
  };
  router.get(PATH, allow(), readQuery(listQuery), again(list), (ctx) => list(ctx));

  const showForm = async (ctx: Context, problem?: Problem, link?: Link) => {
    const { error, errors } = byField(problem);
    const shown = link ? formOf(link) : typedInto({});
    const form = problem ? typedInto(await fieldsOf(ctx)) : shown;
    const { csrf } = personOf(ctx);
    const body = linkForm({ path: pathTo(ctx, link), form, version: link?.version, errors, shortUrl, csrf });
    const title = link ? `Edit ${shownAs(link, shortUrl)}` : "New link";
    showPage(ctx, { title, section: "links", error }, body);
  };
  const showNew: Show = (ctx, _error, problem) => showForm(ctx, problem);
  const showEdit: Show = async (ctx, _error, problem) => showForm(ctx, problem, await find(ctx));
  router.get(`${PATH}/new`, allow(), (ctx) => showNew(ctx));

  router.post(PATH, allow(), again(showNew), async (ctx) => {
    const fields = await fieldsOf(ctx);
    const link = await links.create(actorOf(ctx), isForm(ctx) ? toInput(fields) : fields);
    answerLink(ctx, link, "link-created", 201);
  });

  const show: Show = async (ctx, error) => {
    const link = await find(ctx);
    if (!prefersHtml(ctx)) return answerLink(ctx, link);
    const [analytics, members] = await Promise.all([
      links.analytics(actorOf(ctx), link.id, {}),
      storage.members.list(membershipOf(ctx).id),
    ]);
    const maker = members.find((member) => member.id === link.createdBy)?.username;
    const page = linkPage({
      link,
      path: pathTo(ctx, link),
      shortUrl,
      maker,
      analytics,
      csrf: personOf(ctx).csrf,
    });
    const title = link.title ?? shownAs(link, shortUrl);
    showPage(ctx, { title, section: "links", error, actions: page.actions }, page.body);
  };
  router.get(ONE, allow(), (ctx) => show(ctx));
  router.get(`${ONE}/edit`, allow(), (ctx) => showEdit(ctx));

  const update = async (ctx: Context) => {
    const before = await find(ctx);
    const fields = await fieldsOf(ctx);
    const { input, precondition } = isForm(ctx)
      ? changesIn(fields, before)
      : { input: fields, precondition: preconditionOf(ctx) };
    const after = await links.update(actorOf(ctx), before.id, input, precondition);
    answerLink(ctx, after, doneTo(before, after));
  };
  router.patch(ONE, allow(), update);
  router.post(ONE, allow(), again(showEdit), update);

  const remove = async (ctx: Context) => {
    await links.remove(actorOf(ctx), ctx.params.link_id as string, preconditionOf(ctx));
    answerDone(ctx, { to: pathTo(ctx), done: "link-deleted" });
  };
  router.delete(ONE, allow(), remove);
  router.get(`${ONE}/delete`, allow(), async (ctx) => {
    const link = await find(ctx);
    const path = pathTo(ctx, link);
    const name = shownAs(link, shortUrl);
    const body = linkDeletionForm({ name, path, isArchived: link.archived, csrf: personOf(ctx).csrf });
    showPage(ctx, { title: "Delete this link?", section: "links" }, body);
  });
  router.post(`${ONE}/delete`, allow(), remove);

  /** A browser that changed something goes on to the page of the link; a program gets the link. */
  function answerLink(ctx: Context, link: Link, done?: Done, status = 200) {
    if (!prefersHtml(ctx)) ctx.set("ETag", entityTag(link.version));
    answerDone(ctx, { to: pathTo(ctx, link), ...(done && { done }), status, body: toView(link, shortUrl) });
  }
};

/** The page of a link, or of all. */
function pathTo(ctx: Context, link?: Link): string {
  const path = sectionPath(membershipOf(ctx).id, "links");
  return link ? `${path}/${link.id}` : path;
}

/** What a form changes, if the link is still as the form showed it. */
function changesIn({ version, ...fields }: Input, link: Link) {
  const isAsShown = (current: number) => String(current) === version;
  return {
    input: toInput(fields, formOf(link)),
    precondition: version === undefined ? undefined : isAsShown,
  };
}

/** What the form of the page asks for: what was left empty is nothing, and what is archived has to be asked for. */
function asFilter(ctx: Context): object {
  const { done: _, archived = false, ...others } = ctx.state.query;
  const given = Object.entries(others).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(given), ...(archived !== "all" && { archived }) };
}

function doneTo(before: Link, after: Link): Done {
  if (before.archived === after.archived) return "link-saved";
  return after.archived ? "link-archived" : "link-restored";
}
