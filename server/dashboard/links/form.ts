import type { FieldErrors } from "../../dashboard/answers.ts";
import type { LinkForm } from "../../dashboard/link-fields.ts";
import { type Html, html } from "../html.ts";
import { csrfField, field, formButton, linkButton, select } from "./controls.ts";

type FormOptions = {
  /** Where the form goes, and whoever cancels it: the link, or all of them. */
  path: string;
  form: LinkForm;
  /** What the form was made from, so that nobody writes over what somebody else changed meanwhile; none if it is new. */
  version: number | undefined;
  errors: FieldErrors;
  shortUrl: string;
  csrf: string | undefined;
};

const REDIRECTS = [
  ["302", "302: temporary, every click is counted"],
  ["301", "301: permanent, browsers remember it and may skip the count"],
  ["307", "307: as 302, and a POST stays a POST"],
  ["308", "308: as 301, and a POST stays a POST"],
] as const;

const RARE: (keyof LinkForm)[] = ["expires_at", "max_clicks", "external_id"];

/** A link to fill in, new or not; what was typed stays, and what is wrong is said beside it. */
export function linkForm({ path, form, version, errors, shortUrl, csrf }: FormOptions): Html {
  const isNew = version === undefined;
  const of = (name: keyof LinkForm) => ({ name, value: form[name], error: errors[name] });
  const isOpen = RARE.some((name) => form[name] || errors[name]) || !["", "302"].includes(form.redirect_type);
  return html`<form method="post" action="${path}" class="panel stack">${csrfField(csrf)}
${isNew ? html`` : html`<input type="hidden" name="version" value="${version}">`}
${field({ ...of("url"), label: "Leads to", type: "url", attributes: html`required maxlength="2048" placeholder="https://example.com/a-long-address" autocomplete="off"` })}
${field({
  ...of("slug"),
  label: `Short address: ${shortUrl.replace(/^https?:\/\//, "")}/…`,
  hint: isNew
    ? "1 to 64 of A–Z, a–z, 0–9, - and _. Left empty, one is made up."
    : "Whoever has the old short address finds nothing there once it is changed.",
  attributes: html`maxlength="64" autocapitalize="none" autocomplete="off" spellcheck="false"${isNew ? html`` : html` required`}`,
})}
${field({ ...of("title"), label: "Title", hint: "For you and your colleagues; visitors do not see it.", attributes: html`maxlength="255" autocomplete="off"` })}
${field({ ...of("tags"), label: "Tags", hint: "Words to find the link by, with commas between them.", attributes: html`autocomplete="off"` })}
<details class="more"${isOpen ? html` open` : html``}><summary class="opener">More options</summary><div class="stack">
${field({ ...of("expires_at"), label: "Ends at (UTC)", type: "datetime-local", hint: "From then on the short address answers that it is over. Empty: never." })}
${field({ ...of("max_clicks"), label: "Ends after so many clicks", type: "number", hint: "Empty: never.", attributes: html`min="1" max="2147483647" inputmode="numeric"` })}
${select({ ...of("redirect_type"), label: "Redirect", options: REDIRECTS })}
${field({ ...of("external_id"), label: "Your own id", hint: "From your system, to find the link by in the API.", attributes: html`maxlength="255" autocomplete="off" autocapitalize="none"` })}
</div></details>
<div class="actions"><button type="submit">${isNew ? "Create link" : "Save link"}</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

type Deletion = { name: string; path: string; isArchived: boolean; csrf: string | undefined };

/** Says what a deletion ends, and offers what can be taken back. */
export function linkDeletionForm({ name, path, isArchived, csrf }: Deletion): Html {
  return html`<div class="panel danger">
<p>This cannot be undone. <strong>${name}</strong> answers at once that it is gone, and nobody can ever have that address again. Its clicks stay in your totals.</p>
${isArchived ? html`` : html`<p class="soft">An archived link answers the same, but can be put to use again.</p>`}
<div class="actions">
${formButton({ action: `${path}/delete`, csrf, text: "Delete link", look: "danger" })}
${isArchived ? html`` : formButton({ action: path, csrf, text: "Archive instead", fields: { archived: "true" } })}
${linkButton(path, "Keep it", "quiet")}
</div></div>`;
}
