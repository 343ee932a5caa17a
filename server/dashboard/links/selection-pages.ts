import { type ChangeResult, READ_MAX } from "../../../resources/links/change-many.ts";
import type { Link } from "../../../resources/links/types.ts";
import { breakable, CSRF_FIELD, field, linkButton, panelForm, pluralize } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import type { PageContent } from "../responses.ts";
import { displayUrl } from "./list-page.ts";

/** Joins ids in one field. */
export const ID_SEPARATOR = ".";

/** The ids of selected links, and up to 100 of the links. */
export type Selected = { ids: string[]; shown: Link[] };

/** What the form of a selection says, and the addresses that its pages need. */
export type SelectionForm = {
  action: string;
  tag: string;
  /** Where the form is sent. */
  path: string;
  /** The path of the list with its filter. */
  list: string;
  /** The query of the list. */
  returnTo: string;
};

/** Leads back to the list. */
export function backPage({ list }: SelectionForm, error: string | undefined): PageContent {
  const body = linkButton(list, "Back to links", "quiet");
  return { title: "Links", body, ...(error && { error }) };
}

/** Asks for the tag. */
export function tagPage(form: SelectionForm, { ids }: Selected, error: string | undefined): PageContent {
  const isAdded = form.action === "add-tag";
  const panel = { action: form.path, submit: isAdded ? "Add tag" : "Remove tag", cancel: form.list };
  const tag = field({
    name: "tag",
    label: "Tag",
    value: form.tag,
    error,
    attributes: html`required maxlength="50" autocapitalize="none"`,
  });
  const body = panelForm(panel, html`${hiddenFields(form, ids)}${tag}`);
  return { title: `${isAdded ? "Add a tag to" : "Remove a tag from"} ${pluralize(ids.length, "link")}`, body };
}

const QUESTIONS: Record<string, [verb: string, effect: string]> = {
  delete: [
    "Delete",
    "This cannot be undone. The links below stop working immediately and can never be reused. Their clicks stay in your totals.",
  ],
  archive: ["Archive", "The links below stop working until you restore them."],
  restore: ["Restore", "The links below work again."],
};

/** Asks whether to make a change that can't be undone, and names its links. */
export function confirmationPage(
  form: SelectionForm,
  { ids, shown }: Selected,
  shortUrl: string,
): PageContent {
  const count = pluralize(ids.length, "link");
  const { action } = form;
  const [verb, effect] = QUESTIONS[action] ?? ["", ""];
  const isDeletion = action === "delete";
  const columns = {
    "Short link": (link: Link) => breakable(displayUrl(link, shortUrl)),
    Destination: ({ url, title }: Link) =>
      html`<div class="target">${title && html`<strong>${title}</strong>`}<span class="soft clipped" title="${url}">${url}</span></div>`,
  };
  const confirm = (button: Button) => confirmation(form, ids, button);
  const body = html`<div class="panel${isDeletion && " danger"}">
<p>${effect}</p>
${isDeletion && html`<p class="soft">Archiving also stops them, but you can restore them later.</p>`}
<div class="actions">
${confirm({ action, text: `${verb} ${count}`, look: isDeletion ? "danger" : "primary" })}
${isDeletion && confirm({ action: "archive", text: "Archive instead", look: "quiet" })}
${linkButton(form.list, "Cancel", "quiet")}
</div></div>
${table(`Links to ${action}`, columns, shown)}
${ids.length > shown.length && html`<p class="soft">And ${pluralize(ids.length - shown.length, "link")} more.</p>`}`;
  return { title: `${verb} ${count}?`, body };
}

type Button = { action: string; text: string; look: "primary" | "quiet" | "danger" };

function confirmation(form: SelectionForm, ids: string[], { action, text, look }: Button): Html {
  return html`<form method="post" action="${form.path}" class="inline">${CSRF_FIELD}${hiddenFields({ ...form, action }, ids)}<input type="hidden" name="confirmed" value="true"><button type="submit" class="${look}">${text}</button></form>`;
}

/** Names exactly the links that the page is about, whichever match when it is sent. */
function hiddenFields({ action, returnTo }: SelectionForm, ids: string[]): Html {
  return html`<input type="hidden" name="ids" value="${ids.join(ID_SEPARATOR)}"><input type="hidden" name="action" value="${action}"><input type="hidden" name="return_to" value="${returnTo}">`;
}

/** Says which links weren't changed, and why. */
export function failurePage(
  form: SelectionForm,
  results: ChangeResult[],
  names: Map<string, string>,
): PageContent {
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
