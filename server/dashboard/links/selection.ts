import type { Context } from "koa";
import { problemView } from "../../../resources/links/bulk.ts";
import type { ChangeResult } from "../../../resources/links/change-many.ts";
import { listQuery } from "../../../resources/links/list.ts";
import type { Link } from "../../../resources/links/types.ts";
import { seeOther } from "../../http/redirects.ts";
import { type Input, prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { breakable, CSRF_FIELD, field, linkButton, panelForm } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import { actorOf, pathTo } from "../access.ts";
import {
  type CountedDone,
  countLinks,
  formFieldsOf,
  isForm,
  type PageContent,
  redisplayForm,
  type Show,
  sendJson,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { sendLinks } from "./export.ts";
import { displayUrl } from "./list-page.ts";

const DONE: Record<string, CountedDone> = {
  archive: "links-archived",
  restore: "links-restored",
  delete: "links-deleted",
  "add-tag": "links-tagged",
  "remove-tag": "links-untagged",
};

/** Changes the links that were selected in the list. A page asks for what the form left open. */
export const selection: RouteModule = (router, { services: { links }, urls, allow }) => {
  const readSelected = (ctx: Context, fields: Input) => links.getMany(actorOf(ctx), { ids: idsIn(fields) });

  const show: Show = async (ctx, error, problem) => {
    const fields = await formFieldsOf(ctx);
    const { errors } = splitFieldErrors(problem);
    const render = async () => {
      if (errors.ids || errors.action) return backPage(ctx, fields, errors.ids && "Select 1 to 100 links.");
      const selected = await readSelected(ctx, fields);
      if (selected.length === 0) return backPage(ctx, fields, "These links no longer exist.");
      return isTagging(fields)
        ? tagPage(ctx, fields, selected, errors.tag)
        : deletionPage(ctx, fields, selected, urls.short);
    };
    showPage(ctx, { section: "links", error, ...(await render()) });
  };

  router.post(`${ORGANIZATION}/links/selection`, allow(), redisplayForm(show), async (ctx) => {
    const fields = await formFieldsOf(ctx);
    const isPage = prefersHtml(ctx);
    if (fields.action === "export") return sendLinks(ctx, [await readSelected(ctx, fields)], urls.short);
    if (isPage && isOpen(fields)) return show(ctx);
    const results = await links.changeMany(actorOf(ctx), isForm(ctx) ? toInput(fields) : fields);
    if (!isPage) return sendJson(ctx, { results: results.map(resultView) });
    if (results.some(({ error }) => error)) {
      const remaining = await readSelected(ctx, fields);
      const names = new Map(remaining.map((link) => [link.id, displayUrl(link, urls.short)]));
      return showPage(ctx, { section: "links", ...failurePage(ctx, fields, results, names) });
    }
    seeOther(ctx, listPath(ctx, fields, `${DONE[textFieldOf(fields.action)]}-${results.length}`));
  });
};

function isTagging({ action }: Input): boolean {
  return action === "add-tag" || action === "remove-tag";
}

/** Returns whether a form has to ask for the tag, or for the confirmation of a deletion. */
function isOpen(fields: Input): boolean {
  if (isTagging(fields)) return textFieldOf(fields.tag) === "";
  return fields.action === "delete" && fields.confirmed !== "true";
}

/** The parser of forms turns more than 20 values into an object. */
function idsIn({ ids = [] }: Input): unknown[] {
  return typeof ids === "object" && ids !== null ? Object.values(ids) : [ids];
}

function toInput(fields: Input): Input {
  const { action, tag } = fields;
  return { ids: idsIn(fields), action, ...(isTagging(fields) && { tag }) };
}

/** Returns the path of the list with its filter; `return_to` can't lead elsewhere. */
function listPath(ctx: Context, { return_to }: Input, done?: string): string {
  const given = new URLSearchParams(textFieldOf(return_to));
  const query = new URLSearchParams([...given].filter(([name]) => Object.hasOwn(listQuery.shape, name)));
  if (done) query.set("done", done);
  const path = pathTo(ctx, "links");
  return query.size > 0 ? `${path}?${query}` : path;
}

function resultView({ id, error }: ChangeResult): object {
  return error ? { id, ...problemView(error) } : { id, status: 200 };
}

function backPage(ctx: Context, fields: Input, error: string | undefined): PageContent {
  const body = linkButton(listPath(ctx, fields), "Back to links", "quiet");
  return { title: "Links", body, ...(error && { error }) };
}

function tagPage(ctx: Context, fields: Input, links: Link[], error: string | undefined): PageContent {
  const isAdded = fields.action === "add-tag";
  const form = {
    action: selectionPath(ctx),
    submit: isAdded ? "Add tag" : "Remove tag",
    cancel: listPath(ctx, fields),
  };
  const tag = field({
    name: "tag",
    label: "Tag",
    value: textFieldOf(fields.tag),
    error,
    attributes: html`required maxlength="50" autocapitalize="none"`,
  });
  const body = panelForm(form, html`${hiddenFields(fields, links, textFieldOf(fields.action))}${tag}`);
  return { title: `${isAdded ? "Add a tag to" : "Remove a tag from"} ${countLinks(links.length)}`, body };
}

function deletionPage(ctx: Context, fields: Input, links: Link[], shortUrl: string): PageContent {
  const count = countLinks(links.length);
  const columns = {
    "Short link": (link: Link) => breakable(displayUrl(link, shortUrl)),
    Destination: ({ url, title }: Link) =>
      html`<div class="target">${title && html`<strong>${title}</strong>`}<span class="soft clipped" title="${url}">${url}</span></div>`,
  };
  const body = html`<div class="panel danger">
<p>This cannot be undone. The links below stop working immediately and can never be reused. Their clicks stay in your totals.</p>
<p class="soft">Archiving also stops them, but you can restore them later.</p>
<div class="actions">
${confirmation(ctx, fields, links, { action: "delete", text: `Delete ${count}`, look: "danger" })}
${confirmation(ctx, fields, links, { action: "archive", text: "Archive instead", look: "quiet" })}
${linkButton(listPath(ctx, fields), "Cancel", "quiet")}
</div></div>
<div class="links">${table("Links to delete", columns, links)}</div>`;
  return { title: `Delete ${count}?`, body };
}

type Button = { action: string; text: string; look: string };

function confirmation(ctx: Context, fields: Input, links: Link[], { action, text, look }: Button): Html {
  return html`<form method="post" action="${selectionPath(ctx)}" class="inline">${CSRF_FIELD}${hiddenFields(fields, links, action)}<input type="hidden" name="confirmed" value="true"><button type="submit" class="${look}">${text}</button></form>`;
}

function hiddenFields({ return_to }: Input, links: Link[], action: string): Html {
  return html`${links.map(({ id }) => html`<input type="hidden" name="ids" value="${id}">`)}<input type="hidden" name="action" value="${action}"><input type="hidden" name="return_to" value="${textFieldOf(return_to)}">`;
}

/** Says which links weren't changed, and why. */
function failurePage(
  ctx: Context,
  fields: Input,
  results: ChangeResult[],
  names: Map<string, string>,
): PageContent {
  const failed = results.filter(({ error }) => error);
  const changed = results.length - failed.length;
  const columns = {
    "Short link": ({ id }: ChangeResult) => breakable(names.get(id) ?? id),
    Reason: ({ error }: ChangeResult) => error?.message ?? "",
  };
  const body = html`<p>${changed > 0 ? `${countLinks(changed)} changed.` : "No link was changed."}</p>
${table("Links that were not changed", columns, failed)}
<p>${linkButton(listPath(ctx, fields), "Back to links", "quiet")}</p>`;
  return { title: "Links", error: `${countLinks(failed.length)} could not be changed.`, body };
}

function selectionPath(ctx: Context): string {
  return `${pathTo(ctx, "links")}/selection`;
}
