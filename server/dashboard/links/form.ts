import type { Link } from "../../../resources/links/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { assetAddress } from "../../ui/asset-files.ts";
import { breakable, CSRF_FIELD, field, linkButton, select } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import { UTM_FIELDS, utmOf } from "../../ui/utm.js";
import type { FieldErrors } from "../responses.ts";
import { toUrl, urlField } from "./url-field.ts";
import { mergeUtm, type UtmValues, utmFields } from "./utm-builder.ts";

const FIELD_NAMES = [
  "url",
  "slug",
  "title",
  "tags",
  "external_id",
  "expires_at",
  "max_clicks",
  "redirect_type",
  "fallback_url",
] as const;

type LinkFormValues = Record<(typeof FIELD_NAMES)[number], string> & UtmValues;

// Their spaces count in the API as well: two external IDs may differ by them.
const KEPT = new Set(["title", "external_id"]);

const CONVERSIONS = new Map<string, (text: string) => unknown>([
  ["url", (text) => text],
  ["slug", (text) => text],
  ["title", emptyToNull],
  ["tags", splitTags],
  ["external_id", emptyToNull],
  ["expires_at", (text) => emptyToNull(text) && toUtcTime(text)],
  ["max_clicks", (text) => emptyToNull(text) && Number(text)],
  ["redirect_type", Number],
  ["fallback_url", (text) => emptyToNull(toUrl(text))],
  ["archived", (text) => (text === "true" || text === "false" ? text === "true" : text)],
]);

/** Converts submitted fields to the input of the link service, leaving out those that still have their shown value. */
export function toInput(fields: Input, shown?: LinkFormValues): Input {
  const input: Input = {};
  for (const [name, value] of Object.entries(mergeUtm(fields, shown))) {
    const text = withoutSpaces(name, textFieldOf(value));
    const isOmitted = shown ? text === shown[name as keyof LinkFormValues] : name === "slug" && text === "";
    const convert = CONVERSIONS.get(name);
    if (!isOmitted) input[name] = convert ? convert(text) : value;
  }
  return input;
}

export function toFormValues(fields: Input): LinkFormValues {
  const names = [...FIELD_NAMES, ...UTM_FIELDS];
  return Object.fromEntries(names.map((name) => [name, textFieldOf(fields[name])])) as LinkFormValues;
}

export function valuesOf(link: Link): LinkFormValues {
  return {
    url: link.url,
    slug: link.slug,
    title: link.title ?? "",
    tags: link.tags.join(", "),
    external_id: link.externalId ?? "",
    expires_at: link.expiresAt === null ? "" : new Date(link.expiresAt).toISOString().slice(0, 16),
    max_clicks: String(link.maxClicks ?? ""),
    redirect_type: String(link.redirectType),
    fallback_url: link.fallbackUrl ?? "",
    ...utmOf(link.url),
  };
}

function splitTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.trim());
  return tags.filter(Boolean);
}

function withoutSpaces(name: string, text: string): string {
  return KEPT.has(name) ? text : text.trim();
}

function emptyToNull(text: string): string | null {
  return text.trim() === "" ? null : text;
}

/** Adds the time zone to a time that a browser sends without one: the form says that it is UTC. */
function toUtcTime(text: string): string {
  const time = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?$/.exec(text);
  return time ? `${time[1]}T${time[2]}${time[3] ?? ":00"}Z` : text;
}

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
};

const REDIRECTS = [
  ["302", "302: temporary (default)"],
  ["301", "301: permanent"],
  ["307", "307: temporary, keeps the request method"],
  ["308", "308: permanent, keeps the request method"],
] as const;

const LABELS: Record<(typeof FIELD_NAMES)[number], string> = {
  url: "Destination URL",
  slug: "Short link",
  title: "Title",
  tags: "Tags",
  expires_at: "Expires (UTC)",
  max_clicks: "Click limit",
  redirect_type: "Redirect",
  external_id: "External ID",
  fallback_url: "Fallback URL",
};

const ADVANCED = ["expires_at", "max_clicks", "fallback_url", "external_id"] as const;

/** Renders the form of a link, new or not, with the errors of the last attempt beside their fields. */
export function linkForm({ path, values, version, current, errors, shortUrl }: FormOptions): Html {
  const isNew = version === undefined;
  return html`${current && conflictPanel(current, values)}
<div class="beside">
<form method="post" action="${path}" class="panel stack" data-link-form>${CSRF_FIELD}
${!isNew && html`<input type="hidden" name="version" value="${version}">`}
${basicFields({ values, errors }, shortUrl, isNew)}
${utmFields(values)}
${advancedFields({ values, errors })}
<div class="actions"><button type="submit">${isNew ? "Create link" : "Save link"}</button>${
    current && linkButton(`${path}/edit`, "Reload", "quiet")
  }${linkButton(path, "Cancel", "quiet")}</div>
</form>
${preview(values, shortUrl)}
</div>
<script type="module" src="${assetAddress("link-form.js")}"></script>`;
}

/** Renders what visitors see. The script keeps it current; nothing is loaded from the destination. */
function preview({ url, slug, title }: LinkFormValues, shortUrl: string): Html {
  const parsed = URL.parse(toUrl(url));
  const path = parsed?.href.slice(parsed.href.indexOf(parsed.host) + parsed.host.length) ?? "";
  const shown = (name: string, value: string, empty: string) =>
    html`<span data-preview="${name}" data-empty="${empty}">${value.trim() || empty}</span>`;
  return html`<section class="panel preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
<dl class="facts">
<dt>Short link</dt><dd>${hostOf(shortUrl)}/${shown("slug", slug, "…")}</dd>
<dt>Leads to</dt><dd><strong>${shown("host", parsed?.host ?? "", "…")}</strong>${shown("path", path, "")}</dd>
<dt>Title</dt><dd>${shown("title", title, "none")}</dd>
</dl>
<p class="hint">Visitors go straight to the destination. Chats and social networks follow the link, too, and show the title and image of the destination, not the title above.</p>
<p class="hint">With a + after the short link, visitors see the destination and this title first.</p>
</section>`;
}

function hostOf(shortUrl: string): string {
  return shortUrl.replace(/^https?:\/\//, "");
}

function conflictPanel(current: LinkFormValues, submitted: LinkFormValues): Html {
  const values = { ...submitted, ...mergeUtm(submitted, current) };
  const differing = FIELD_NAMES.filter((name) => current[name] !== withoutSpaces(name, values[name]));
  if (differing.length === 0) return html`<p class="soft">Your values are the same as the current ones.</p>`;
  return table(
    "Differences",
    {
      Field: (name) => LABELS[name],
      "Current value": (name) => shownValue(name, current[name]),
      "Your value": (name) => shownValue(name, values[name]),
    },
    differing,
  );
}

function shownValue(name: (typeof FIELD_NAMES)[number], value: string): Html {
  if (value.trim() === "") return html`<span class="soft">empty</span>`;
  if (name === "redirect_type") return html`${REDIRECTS.find(([type]) => type === value)?.[1] ?? value}`;
  return html`<bdi>${breakable(name === "expires_at" ? value.replace("T", " ") : value)}</bdi>`;
}

type FieldOptions = Pick<FormOptions, "values" | "errors">;

function basicFields(options: FieldOptions, shortUrl: string, isNew: boolean): Html {
  const state = fieldState(options);
  return html`${urlField({ ...state("url"), label: LABELS.url, isRequired: true })}
${field({
  ...state("slug"),
  label: LABELS.slug,
  prefix: `${hostOf(shortUrl)}/`,
  hint: isNew
    ? "Letters, digits, - and _, up to 64. Leave empty for a random one."
    : "Changing this breaks the old short link.",
  attributes: html`maxlength="64" autocapitalize="none" autocomplete="off" spellcheck="false"${!isNew && html` required`}`,
})}
${field({ ...state("title"), label: LABELS.title, hint: "Visible to your organization, and on the preview page of the link.", attributes: html`maxlength="255" autocomplete="off"` })}
${field({ ...state("tags"), label: LABELS.tags, hint: "Separate tags with commas.", attributes: html`autocomplete="off"` })}`;
}

function advancedFields({ values, errors }: FieldOptions): Html {
  const state = fieldState({ values, errors });
  const isOpen =
    ADVANCED.some((name) => values[name] || errors[name]) || !["", "302"].includes(values.redirect_type);
  return html`<details class="more"${isOpen && html` open`}><summary class="opener">More options</summary><div class="stack">
${field({ ...state("expires_at"), label: LABELS.expires_at, type: "datetime-local", hint: "After this time the link stops working. Leave empty for no expiry.", attributes: html`autocomplete="off"` })}
${field({ ...state("max_clicks"), label: LABELS.max_clicks, type: "number", hint: "After this many clicks, known bots included, the link stops working. Leave empty for no limit.", attributes: html`min="1" max="2147483647" inputmode="numeric"` })}
${select({ ...state("redirect_type"), label: LABELS.redirect_type, options: REDIRECTS, hint: "Browsers don’t cache any of them, so every click is counted." })}
${urlField({ ...state("fallback_url"), label: LABELS.fallback_url, hint: "Visitors go here when the link is archived, expired or used up. Leave empty to use the organization’s fallback URL." })}
${field({ ...state("external_id"), label: LABELS.external_id, hint: "Your own ID for the link, to find it in the API.", attributes: html`maxlength="255" autocomplete="off" autocapitalize="none"` })}
</div></details>`;
}

function fieldState({ values, errors }: FieldOptions) {
  return (name: (typeof FIELD_NAMES)[number]) => ({ name, value: values[name], error: errors[name] });
}
