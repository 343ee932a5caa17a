import type { Context } from "koa";
import { preconditionOf } from "../../../resources/http/etag.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { readQuery, validate } from "../../../resources/http/validate.ts";
import { IS_RESERVED } from "../../../resources/links/create.ts";
import { linkTag, shortUrlOf, toView } from "../../../resources/links/schema.ts";
import type { Link } from "../../../resources/links/types.ts";
import { seeOther } from "../../http/redirects.ts";
import { type Input, prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith } from "../../ui/table.ts";
import { actorOf, pathTo } from "../access.ts";
import { type Done, signedConfirmation } from "../confirmation.ts";
import * as forms from "../forms.ts";
import { respondToChange, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { formFieldOf, linkForm, toFormValues, toInput, valuesOf } from "./form.ts";
import { displayUrl, list } from "./list.ts";
import { showLink } from "./page.ts";
import { QR_FORMATS, type QrFormat, qrPage, qrQuery } from "./qr-code.ts";
import { mergeRules } from "./rules-form.ts";
import { selection } from "./selection.ts";

const LINKS = `${ORGANIZATION}/links`;
const LINK = `${LINKS}/:link_id`;

const EDIT_CONFLICT =
  "This link was changed while you were editing it. Compare the values: if you save again, yours replace the current ones.";

/** Adds the list of links, the page of a link, its QR code, and the forms that create, edit and delete it. */
export const links: RouteModule = (router, options) => {
  const { urls, allow } = options;
  const { links } = options.services;
  const common = { access: [allow()], section: "links" } as const;
  const find = (ctx: Context) => links.get(actorOf(ctx), ctx.params.link_id as string);

  list(router, options);

  forms.addForm(router, {
    ...common,
    path: `${LINKS}/new`,
    action: LINKS,
    render: (ctx, problem) => formPage(ctx, options, problem),
    async change(ctx) {
      const link = await links.create(actorOf(ctx), await forms.inputOf(ctx, toInput));
      respondWithLink(ctx, link, urls.short, "link-created", 201);
    },
  });

  selection(router, options);

  router.get(LINK, allow(), async (ctx) => {
    const link = await find(ctx);
    if (prefersHtml(ctx)) await showLink(ctx, link, options);
    else respondWithLink(ctx, link, urls.short);
  });

  const showQrPage: forms.Show = async (ctx, _error, problem) => {
    const link = await find(ctx);
    const { color } = problem ? {} : validate(qrQuery, ctx.state.query);
    const code = { path: pathOf(ctx, link), shownUrl: displayUrl(link, urls.short), color };
    const { error, errors } = forms.queryErrors(problem, ["color"]);
    const body = qrPage(code, textFieldOf(ctx.query.color), errors);
    showPage(ctx, { title: "QR code", intro: code.shownUrl, section: "links", error, body });
  };
  router.get(`${LINK}/qr`, allow(), readQuery(qrQuery), forms.redisplayForm(showQrPage), (ctx) =>
    showQrPage(ctx),
  );

  for (const format of Object.keys(QR_FORMATS) as QrFormat[])
    router.get(
      `${LINK}/qr.${format}`,
      allow(),
      readQuery(qrQuery),
      forms.redisplayForm(showQrPage),
      async (ctx) => {
        const link = await find(ctx);
        const { download, ...query } = validate(qrQuery, ctx.state.query);
        if (download !== undefined) ctx.attachment(`${link.slug.replaceAll("/", "-")}.${format}`);
        const { type, render } = QR_FORMATS[format];
        ctx.type = type;
        ctx.body = await render(shortUrlOf(link, urls.short), query);
      },
    );

  forms.addForm(router, {
    ...common,
    path: `${LINK}/edit`,
    action: LINK,
    program: ["patch", LINK],
    render: async (ctx, problem) => formPage(ctx, options, problem, await find(ctx)),
    async change(ctx) {
      const before = await find(ctx);
      const read = (fields: Input) => toInput(fields, valuesOf(before));
      const { input, precondition } = await forms.changesOf(ctx, read, (version) => [linkTag({ version })]);
      const after = await links.update(actorOf(ctx), before.id, input, precondition);
      const done = after.archived ? "link-archived" : "link-restored";
      respondWithLink(ctx, after, urls.short, before.archived === after.archived ? "link-saved" : done);
    },
  });

  forms.addForm(router, {
    ...common,
    path: `${LINK}/delete`,
    program: ["delete", LINK],
    async render(ctx) {
      const link = await find(ctx);
      const body = deletionPanel(displayUrl(link, urls.short), pathOf(ctx, link), link.archived);
      return { title: "Delete this link?", body };
    },
    async change(ctx) {
      await links.remove(actorOf(ctx), ctx.params.link_id as string, preconditionOf(ctx));
      respondToChange(ctx, { to: pathOf(ctx), done: "link-deleted" });
    },
  });
};

function deletionPanel(name: string, path: string, isArchived: boolean): Html {
  return html`<div class="panel danger">
<p>This cannot be undone. <strong>${name}</strong> stops working immediately and can never be reused. Its clicks stay in your totals.</p>
${!isArchived && html`<p class="soft">Archiving also stops the link, but you can restore it later.</p>`}
<div class="actions">
${formButton({ action: `${path}/delete`, text: "Delete link", look: "danger" })}
${!isArchived && formButton({ action: path, text: "Archive instead", fields: { archived: "true" } })}
${linkButton(path, "Cancel", "quiet")}
</div></div>`;
}

/** Returns the page with the form of a new link, or of the given one; after an error, with the submitted values. */
async function formPage(
  ctx: Context,
  { services: { domains }, urls }: DashboardOptions,
  problem?: Problem,
  link?: Link,
) {
  const { errors, ...error } = forms.splitFieldErrors(problem, formFieldOf);
  const listed = await domains.list(actorOf(ctx));
  const possible = listed.filter(({ verified, host }) => verified || host === link?.domain);
  const byDefault = possible.find((domain) => domain.default)?.host;
  const shown = link ? valuesOf(link) : { url: ctx.query.url, domain: byDefault };
  // The button that archives a link sends no other field.
  const values = toFormValues({ ...shown, ...(problem && mergeRules(await forms.formFieldsOf(ctx))) });
  const isReserved = problem?.errors?.some(
    ({ field, message }) => field === "slug" && message === IS_RESERVED,
  );
  if (isReserved) errors.slug = `“${values.slug.trim()}” is reserved. Choose another one.`;
  if (problem?.code === "slug_taken") errors.slug = `“${values.slug.trim()}” is already taken.`;
  const hasConflict = problem?.code === "precondition_failed";
  const body = linkForm({
    path: pathOf(ctx, link),
    values,
    version: link?.version,
    current: link && hasConflict ? valuesOf(link) : undefined,
    hasPassword: link?.hasPassword ?? false,
    errors,
    hosts: [["", new URL(urls.short).host], ...possible.map(({ host }) => [host, host] as const)],
  });
  const title = link ? `Edit ${displayUrl(link, urls.short)}` : "New link";
  return { title, ...error, ...(hasConflict && { error: EDIT_CONFLICT }), body };
}

function respondWithLink(ctx: Context, link: Link, shortUrl: string, done?: Done, status = 200): void {
  if (!prefersHtml(ctx)) ctx.set("ETag", linkTag(link));
  const canBeUndone = done === "link-archived" || done === "link-restored";
  const to = pathOf(ctx, link);
  const body = toView(link, shortUrl);
  if (canBeUndone && prefersHtml(ctx)) seeOther(ctx, pathWith(to, signedConfirmation(ctx, done, link.id)));
  else respondToChange(ctx, { to, done, status, body });
}

function pathOf(ctx: Context, link?: Link): string {
  const path = pathTo(ctx, "links");
  return link ? `${path}/${link.id}` : path;
}
