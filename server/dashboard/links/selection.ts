import type { Context } from "koa";
import type { FieldError, Problem } from "../../../resources/http/problem.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import { changeResultView } from "../../../resources/links/bulk-update.ts";
import { CHANGED_MAX, type ChangeResult, READ_MAX } from "../../../resources/links/change-many.ts";
import { listQuery } from "../../../resources/links/list.ts";
import type { Link } from "../../../resources/links/types.ts";
import { seeOther } from "../../http/redirects.ts";
import { type Input, prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { breakable, field, formButton, hidden, linkButton, panelForm } from "../../ui/controls.ts";
import type { PageContent } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathWith, table } from "../../ui/table.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf, pathTo } from "../access.ts";
import { type CountedDone, signedConfirmation } from "../confirmation.ts";
import * as forms from "../forms.ts";
import { sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { pages, sendLinks } from "./export.ts";
import { toUtcTime, UTM } from "./form.ts";
import { displayUrl, filterOf } from "./list.ts";

const ACTIONS: Record<string, { verb: string; done: CountedDone; effect?: string }> = {
  archive: {
    verb: "Archive",
    done: "links-archived",
    effect: "The links below stop working until you restore them.",
  },
  restore: { verb: "Restore", done: "links-restored", effect: "The links below work again." },
  delete: {
    verb: "Delete",
    done: "links-deleted",
    effect:
      "This cannot be undone. The links below stop working immediately and can never be reused. Their clicks stay in your totals.",
  },
  "add-tag": { verb: "Add tag", done: "links-tagged" },
  "remove-tag": { verb: "Remove tag", done: "links-untagged" },
  change: { verb: "Change links", done: "links-changed" },
};

// Joins ids in one field.
const ID_SEPARATOR = ".";
// The confirmation has their ids in its URL, in 3 KB. A change of more links asks first.
const UNDONE_MAX = 100;

/** Changes the links that were selected in the list. A page asks for what the form left open. */
export const selection: RouteModule = (router, { services: { links }, urls, allow }) => {
  const findIds = (ctx: Context, fields: Input) =>
    isAll(fields)
      ? links.matches.findAll(actorOf(ctx), filterOf(listQueryIn(fields)), shownAtIn(fields))
      : idsIn(fields);

  /** Shows the page that asks for what the form left open, or that says why it was rejected. */
  async function ask(ctx: Context, fields: Input, ids: unknown[], problem?: Problem) {
    const form = formOf(ctx, fields);
    const { error, errors } = forms.splitFieldErrors(problem);
    const shown = await links.getMany(actorOf(ctx), { ids: ids.slice(0, READ_MAX) });
    const selected = { shown, ids: ids.length > READ_MAX ? ids.map(String) : shown.map(({ id }) => id) };
    const page = () => {
      if (shown.length === 0) return backPage(form, "These links no longer exist.");
      if (fields.action === "change")
        return changesPage(form, selected, changesFields(fields, problem?.errors));
      return isTagging(fields)
        ? tagPage(form, selected, errors.tag)
        : confirmationPage(form, selected, urls.short);
    };
    showPage(ctx, { section: "links", error, ...page() });
  }

  const show: forms.Show = async (ctx, error, problem) => {
    const fields = await forms.formFieldsOf(ctx);
    const { errors } = forms.splitFieldErrors(problem);
    if (isTagging(fields) ? errors.tag : errors.changes)
      return ask(ctx, fields, await findIds(ctx, fields), problem);
    const page = backPage(formOf(ctx, fields), describeError(errors, fields));
    showPage(ctx, { section: "links", error, ...page });
  };

  async function sendSelected(ctx: Context, fields: Input): Promise<void> {
    if (isAll(fields))
      return sendLinks(ctx, pages(links, actorOf(ctx), filterOf(listQueryIn(fields))), urls.short);
    sendLinks(ctx, [await links.getMany(actorOf(ctx), { ids: idsIn(fields) })], urls.short);
  }

  router.post(`${ORGANIZATION}/links/selection`, allow(), forms.redisplayForm(show), async (ctx) => {
    const fields = await forms.formFieldsOf(ctx);
    const isPage = prefersHtml(ctx);
    if (fields.action === "export") return sendSelected(ctx, fields);
    const ids = await findIds(ctx, fields);
    if (isPage && isOpen(fields, ids.length)) return ask(ctx, fields, ids);
    const results = await links.changeMany(actorOf(ctx), forms.isForm(ctx) ? toInput(fields, ids) : fields);
    if (!isPage)
      return sendJson(ctx, { results: results.map((result) => changeResultView(result, urls.short)) });
    const failed = results.filter(({ error }) => error);
    if (failed.length === 0) return seeOther(ctx, listPath(ctx, fields, doneQuery(ctx, fields, results)));
    const ofFailed = failed.slice(0, READ_MAX).map(({ id }) => id);
    const remaining = await links.getMany(actorOf(ctx), { ids: ofFailed });
    const names = new Map(remaining.map((link) => [link.id, displayUrl(link, urls.short)]));
    showPage(ctx, { section: "links", ...failurePage(formOf(ctx, fields), results, names) });
  });
};

function doneQuery(
  ctx: Context,
  { action, is_undo }: Input,
  results: ChangeResult[],
): Record<string, string> {
  const done = `${ACTIONS[textFieldOf(action)]?.done}-${results.length}`;
  const changed = results.filter(({ isChanged }) => isChanged).map(({ id }) => id);
  const isUndoable = isArchiving({ action }) && is_undo !== "true";
  const canBeUndone = isUndoable && changed.length > 0 && changed.length <= UNDONE_MAX;
  return signedConfirmation(ctx, done, canBeUndone ? changed.join(ID_SEPARATOR) : undefined);
}

function isAll({ all }: Input): boolean {
  return all === "true";
}

function isTagging({ action }: Input): boolean {
  return action === "add-tag" || action === "remove-tag";
}

function isArchiving({ action }: Input): boolean {
  return action === "archive" || action === "restore";
}

/** Returns whether a form has to ask for the tag or the changes, or for the confirmation of what can't be undone. */
function isOpen(fields: Input, count: number): boolean {
  if (isTagging(fields)) return textFieldOf(fields.tag) === "";
  if (fields.action === "change") return fields.changes === undefined;
  if (fields.confirmed === "true") return false;
  return fields.action === "delete" || (isArchiving(fields) && count > UNDONE_MAX);
}

/** The parser of forms turns more than 20 values into an object. A form of this module has all ids in one value. */
function idsIn({ ids = [] }: Input): unknown[] {
  const values = typeof ids === "object" && ids !== null ? Object.values(ids) : [ids];
  return values.flatMap((value) => (typeof value === "string" ? value.split(ID_SEPARATOR) : value));
}

/** Returns when the list was shown. Links that were created later are not in a selection of all. */
function shownAtIn({ shown_at }: Input): number {
  if (!/^\d{1,15}$/.test(textFieldOf(shown_at)))
    throw invalidField("shown_at", "must be a time in milliseconds");
  return Math.min(Number(shown_at), Date.now());
}

function toInput(fields: Input, ids: unknown[]): Input {
  const { action, tag } = fields;
  return {
    ids,
    action,
    ...(isTagging(fields) && { tag }),
    ...(action === "change" && { changes: readChanges(fields) }),
  };
}

function listQueryIn({ return_to, ...fields }: Input): Record<string, string> {
  const given = new URLSearchParams(textFieldOf(return_to));
  const isKnown = (name: string) =>
    Object.hasOwn(listQuery.shape, name) && !(isAll(fields) && name === "cursor");
  return Object.fromEntries([...given].filter(([name]) => isKnown(name)));
}

/** Returns the path of the list with its filter; `return_to` can't lead elsewhere. */
function listPath(ctx: Context, fields: Input, done?: Record<string, string>): string {
  return pathWith(pathTo(ctx, "links"), { ...listQueryIn(fields), ...done });
}

function describeError(errors: forms.FieldErrors, fields: Input): string | undefined {
  const max = CHANGED_MAX.toLocaleString("en");
  if (errors.all)
    return `More than ${max} links match. Narrow the filter, and try again. No link was changed.`;
  return errors.ids && (isAll(fields) ? "No link matches anymore." : `Select 1 to ${max} links.`);
}

/** Returns what the form of a selection says, and the addresses that its pages need. */
function formOf(ctx: Context, fields: Input) {
  return {
    action: textFieldOf(fields.action),
    tag: textFieldOf(fields.tag),
    path: `${pathTo(ctx, "links")}/selection`,
    list: listPath(ctx, fields),
    returnTo: pathWith("", listQueryIn(fields)),
  };
}

type SelectionForm = ReturnType<typeof formOf>;

/** The ids of selected links, and up to 100 of the links. */
type Selected = { ids: string[]; shown: Link[] };

function backPage({ list }: SelectionForm, error: string | undefined): PageContent {
  const body = linkButton(list, "Back to links", "quiet");
  return { title: "Links", body, ...(error && { error }) };
}

function tagPage(form: SelectionForm, { ids }: Selected, error: string | undefined): PageContent {
  const isAdded = form.action === "add-tag";
  const tag = field({
    name: "tag",
    label: "Tag",
    value: form.tag,
    error,
    attributes: html`required maxlength="50" autocapitalize="none"`,
  });
  const title = `${isAdded ? "Add a tag to" : "Remove a tag from"} ${pluralize(ids.length, "link")}`;
  return { title, body: askingForm(form, ids, tag) };
}

function changesPage(form: SelectionForm, { ids }: Selected, fields: Html): PageContent {
  const body = askingForm(form, ids, html`${hidden("changes", "entered")}${fields}`);
  return { title: `Change ${pluralize(ids.length, "link")}`, body };
}

function askingForm(form: SelectionForm, ids: string[], fields: Html): Html {
  const panel = { action: form.path, submit: ACTIONS[form.action]?.verb ?? "", cancel: form.list };
  const sent = Object.entries(fieldsOf(form, ids)).map(([name, value]) => hidden(name, value));
  return panelForm(panel, html`${sent}${fields}`);
}

/** Asks whether to make a change that can't be undone, and names its links. */
function confirmationPage(form: SelectionForm, { ids, shown }: Selected, shortUrl: string): PageContent {
  const count = pluralize(ids.length, "link");
  const { action } = form;
  const { verb = "", effect = "" } = ACTIONS[action] ?? {};
  const isDeletion = action === "delete";
  const columns = {
    "Short link": (link: Link) => breakable(displayUrl(link, shortUrl)),
    Destination: ({ url, title }: Link) =>
      html`<div class="target">${title && html`<strong>${title}</strong>`}<span class="soft clipped" title="${url}">${url}</span></div>`,
  };
  const confirm = (action: string, text: string, look: "primary" | "quiet" | "danger") =>
    formButton({
      action: form.path,
      text,
      look,
      fields: { ...fieldsOf({ ...form, action }, ids), confirmed: "true" },
    });
  const body = html`<div class="panel${isDeletion && " danger"}">
<p>${effect}</p>
${isDeletion && html`<p class="soft">Archiving also stops them, but you can restore them later.</p>`}
<div class="actions">
${confirm(action, `${verb} ${count}`, isDeletion ? "danger" : "primary")}
${isDeletion && confirm("archive", "Archive instead", "quiet")}
${linkButton(form.list, "Cancel", "quiet")}
</div></div>
${table(`Links to ${action}`, columns, shown)}
${ids.length > shown.length && html`<p class="soft">And ${pluralize(ids.length - shown.length, "link")} more.</p>`}`;
  return { title: `${verb} ${count}?`, body };
}

/** Names exactly the links that the page is about, whichever match when it is sent. */
function fieldsOf({ action, returnTo }: SelectionForm, ids: string[]): Record<string, string> {
  return { ids: ids.join(ID_SEPARATOR), action, return_to: returnTo };
}

/** Says which links weren't changed, and why. */
function failurePage(form: SelectionForm, results: ChangeResult[], names: Map<string, string>): PageContent {
  const failed = results.filter(({ error }) => error);
  const changed = results.length - failed.length;
  const columns = {
    "Short link": ({ id }: ChangeResult) => breakable(names.get(id) ?? id),
    Reason: ({ error }: ChangeResult) => error?.message ?? "",
  };
  const more = failed.length - READ_MAX;
  const body = html`<p>${changed > 0 ? `${pluralize(changed, "link")} changed.` : "No link was changed."}</p>
${table("Links that were not changed", columns, failed.slice(0, READ_MAX))}
${more > 0 && html`<p class="soft">And ${pluralize(more, "link")} more.</p>`}
<p>${linkButton(form.list, "Back to links", "quiet")}</p>`;
  return { title: "Links", error: `${pluralize(failed.length, "link")} could not be changed.`, body };
}

const PARAMETERS = Object.entries(UTM).map(([name, { label }]) => ({
  name: name.replace("utm_", ""),
  label,
}));

/** Converts the fields of the form to changes. Empty ones change nothing, unless a checkbox says that they remove. */
function readChanges(fields: Input): object {
  const read = (name: string) => textFieldOf(fields[name]).trim();
  const [expiry, replacement] = [read("expires_at"), { find: read("find"), with: read("with") }];
  const utm = PARAMETERS.map(({ name }) => [name, read(name) || null]);
  const given = utm.filter(([, value]) => value !== null || fields.removes_utm === "true");
  return {
    ...(fields.removes_expiry === "true" && { expires_at: null }),
    ...(expiry && { expires_at: toUtcTime(expiry) }),
    ...(Object.values(replacement).some(Boolean) && { replace_in_url: replacement }),
    ...(given.length > 0 && { utm: Object.fromEntries(given) }),
  };
}

/** Renders the fields of changes to several links, with what was entered and what is wrong with it. */
function changesFields(fields: Input, errors: readonly FieldError[] = []): Html {
  const input = (name: string, label: string, hint?: string, type = "text") => {
    const { message } = errors.find((error) => error.field.split(".").at(-1) === name) ?? {};
    const error = message && forms.toSentence(message);
    const attributes = html`maxlength="2048" autocapitalize="none" autocomplete="off" spellcheck="false"`;
    return field({ name, label, hint, type, error, attributes, value: textFieldOf(fields[name]) });
  };
  const checkbox = (name: string, text: string) =>
    html`<label class="option"><input type="checkbox" name="${name}" value="true"${fields[name] === "true" && html` checked`}>${text}</label>`;
  const isEmpty = errors.some((error) => error.field === "changes");
  return html`<p class="${isEmpty ? "error" : "hint"}">${isEmpty ? "Enter at least one change." : "What you leave empty stays as it is."}</p>
${input("expires_at", "Expires (UTC)", undefined, "datetime-local")}
${checkbox("removes_expiry", "Remove the expiry")}
${input("find", "Find in the destination", "Exactly this text, wherever it occurs.")}
${input("with", "Replace with", "Leave empty to remove the text.")}
${PARAMETERS.map(({ name, label }) => input(name, `UTM ${label.toLowerCase()}`))}
${checkbox("removes_utm", "Remove UTM parameters that are empty")}`;
}
