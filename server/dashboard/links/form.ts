import { breakable, csrfField, field, formButton, linkButton, select } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import type { FieldErrors } from "../responses.ts";
import { FIELD_NAMES, type LinkFormValues } from "./form-fields.ts";

type FormOptions = {
  /** The target of the form and of its Cancel button: the link, or the list for a new one. */
  path: string;
  values: LinkFormValues;
  /** The version of the link that the form shows, to detect concurrent changes; undefined for a new link. */
  version: number | undefined;
  /** The values of the link if it has changed since the form was shown. */
  current: LinkFormValues | undefined;
  errors: FieldErrors;
  shortUrl: string;
  csrf: string | undefined;
};

const REDIRECTS = [
  ["302", "302: temporary, every click is counted"],
  ["301", "301: permanent, browsers may cache it and skip the count"],
  ["307", "307: like 302, keeps the request method"],
  ["308", "308: like 301, keeps the request method"],
] as const;

const LABELS: Record<keyof LinkFormValues, string> = {
  url: "Destination URL",
  slug: "Short link",
  title: "Title",
  tags: "Tags",
  expires_at: "Expires (UTC)",
  max_clicks: "Click limit",
  redirect_type: "Redirect",
  external_id: "External ID",
};

const ADVANCED: (keyof LinkFormValues)[] = ["expires_at", "max_clicks", "external_id"];

/** Renders the form of a link, new or not, with the errors of the last attempt beside their fields. */
export function linkForm({ path, values, version, current, errors, shortUrl, csrf }: FormOptions): Html {
  const isNew = version === undefined;
  return html`${current ? conflictPanel(current, values) : html``}
<form method="post" action="${path}" class="panel stack">${csrfField(csrf)}
${isNew ? html`` : html`<input type="hidden" name="version" value="${version}">`}
${basicFields({ values, errors, shortUrl, isNew })}
${advancedFields({ values, errors })}
<div class="actions"><button type="submit">${isNew ? "Create link" : "Save link"}</button>${
    current ? linkButton(`${path}/edit`, "Reload", "quiet") : html``
  }${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

/** Shows what saving the form again overwrites. */
function conflictPanel(current: LinkFormValues, values: LinkFormValues): Html {
  const differing = FIELD_NAMES.filter((name) => current[name] !== values[name].trim());
  if (differing.length === 0) return html`<p class="soft">Your values are the same as the current ones.</p>`;
  return table(
    "Differences",
    [
      { head: "Field", cell: (name) => html`${LABELS[name]}` },
      { head: "Current value", cell: (name) => shownValue(name, current[name]) },
      { head: "Your value", cell: (name) => shownValue(name, values[name]) },
    ],
    differing,
  );
}

function shownValue(name: keyof LinkFormValues, value: string): Html {
  if (value.trim() === "") return html`<span class="soft">empty</span>`;
  if (name === "redirect_type") return html`${REDIRECTS.find(([type]) => type === value)?.[1] ?? value}`;
  return html`<bdi>${breakable(name === "expires_at" ? value.replace("T", " ") : value)}</bdi>`;
}

type FieldOptions = Pick<FormOptions, "values" | "errors">;

function basicFields({
  values,
  errors,
  shortUrl,
  isNew,
}: FieldOptions & { shortUrl: string; isNew: boolean }): Html {
  const state = fieldState({ values, errors });
  return html`${field({ ...state("url"), label: LABELS.url, type: "url", attributes: html`required maxlength="2048" placeholder="https://example.com/page" autocomplete="off"` })}
${field({
  ...state("slug"),
  label: `${LABELS.slug}: ${shortUrl.replace(/^https?:\/\//, "")}/…`,
  hint: isNew
    ? "Letters, digits, - and _, up to 64. Leave empty for a random one."
    : "Changing this breaks the old short link.",
  attributes: html`maxlength="64" autocapitalize="none" autocomplete="off" spellcheck="false"${isNew ? html`` : html` required`}`,
})}
${field({ ...state("title"), label: LABELS.title, hint: "Visible to your organization, not to visitors.", attributes: html`maxlength="255" autocomplete="off"` })}
${field({ ...state("tags"), label: LABELS.tags, hint: "Separate tags with commas.", attributes: html`autocomplete="off"` })}`;
}

function advancedFields({ values, errors }: FieldOptions): Html {
  const state = fieldState({ values, errors });
  const isOpen =
    ADVANCED.some((name) => values[name] || errors[name]) || !["", "302"].includes(values.redirect_type);
  return html`<details class="more"${isOpen ? html` open` : html``}><summary class="opener">More options</summary><div class="stack">
${field({ ...state("expires_at"), label: LABELS.expires_at, type: "datetime-local", hint: "After this time the link stops working. Leave empty for no expiry." })}
${field({ ...state("max_clicks"), label: LABELS.max_clicks, type: "number", hint: "After this many visits, bots included, the link stops working. Leave empty for no limit.", attributes: html`min="1" max="2147483647" inputmode="numeric"` })}
${select({ ...state("redirect_type"), label: LABELS.redirect_type, options: REDIRECTS })}
${field({ ...state("external_id"), label: LABELS.external_id, hint: "Your own ID for the link, to find it in the API.", attributes: html`maxlength="255" autocomplete="off" autocapitalize="none"` })}
</div></details>`;
}

/** Returns a function that gives a field its value and error. */
function fieldState({ values, errors }: FieldOptions) {
  return (name: keyof LinkFormValues) => ({ name, value: values[name], error: errors[name] });
}

type Deletion = { name: string; path: string; isArchived: boolean; csrf: string | undefined };

/** Renders the confirmation of a deletion, which offers archiving instead. */
export function linkDeletionForm({ name, path, isArchived, csrf }: Deletion): Html {
  return html`<div class="panel danger">
<p>This cannot be undone. <strong>${name}</strong> stops working immediately and can never be reused. Its clicks stay in your totals.</p>
${isArchived ? html`` : html`<p class="soft">Archiving also stops the link, but you can restore it later.</p>`}
<div class="actions">
${formButton({ action: `${path}/delete`, csrf, text: "Delete link", look: "danger" })}
${isArchived ? html`` : formButton({ action: path, csrf, text: "Archive instead", fields: { archived: "true" } })}
${linkButton(path, "Cancel", "quiet")}
</div></div>`;
}
