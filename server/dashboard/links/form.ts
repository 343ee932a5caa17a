import { camelCase } from "../../../resources/http/text.ts";
import type { Link } from "../../../resources/links/types.ts";
import { UTM_FIELDS, type UtmField, utmOf, withUtm } from "../../../resources/links/utm.js";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { assetAddress } from "../../ui/asset-files.ts";
import * as ui from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { table } from "../../ui/table.ts";
import type { FieldErrors } from "../forms.ts";
import { CARD_FIELDS, mergeCard } from "./card.ts";
import { mergeRules, readRules, ruleFieldOf, rulesFields, writeRules } from "./rules-form.ts";

type FormField = {
  label: string;
  /** Converts the text of the form to the input of the service. The default keeps it. */
  read?(text: string): unknown;
  /** By default, the property of the link that has the same name. */
  write?(link: Link): string;
  /** Its spaces count in the API as well: two external IDs may differ by them. */
  keepsSpaces?: true;
};

const FIELDS = {
  url: { label: "Destination URL" },
  // Empty for the host of this service.
  domain: { label: "Domain", read: emptyToNull },
  slug: { label: "Short link" },
  title: { label: "Title", read: emptyToNull, keepsSpaces: true },
  tags: { label: "Tags", read: splitTags, write: ({ tags }) => tags.join(", ") },
  external_id: { label: "External ID", read: emptyToNull, keepsSpaces: true },
  expires_at: {
    label: "Expires (UTC)",
    read: (text) => emptyToNull(text) && toUtcTime(text),
    write: ({ expiresAt }) => (expiresAt === null ? "" : new Date(expiresAt).toISOString().slice(0, 16)),
  },
  max_clicks: { label: "Click limit", read: (text) => emptyToNull(text) && Number(text) },
  redirect_type: { label: "Redirect", read: Number },
  fallback_url: { label: "Fallback URL", read: (text) => emptyToNull(toUrl(text)) },
  forward_query: { label: "Visitors’ parameters", read: toFlag },
  forward_path: { label: "Visitors’ paths", read: toFlag },
  rules: { label: "Rules", read: (text) => readRules(text, toUtcTime, toUrl), write: writeRules },
  ...CARD_FIELDS,
  card_image_url: { ...CARD_FIELDS.card_image_url, read: toUrl },
  // An empty field keeps the current password, which isn't known.
  password: { label: "Password", read: (text) => text || null, keepsSpaces: true },
} satisfies Record<string, FormField>;

type FieldName = keyof typeof FIELDS;
const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

/** The name of the checkbox that removes the password. */
const REMOVAL = "remove_password";

type UtmValues = Record<UtmField, string>;
type LinkFormValues = Record<FieldName, string> & UtmValues;

/** Converts submitted fields to the input of the link service, leaving out those that still have their shown value. */
export function toInput({ [REMOVAL]: removal, ...fields }: Input, shown?: LinkFormValues): Input {
  const input: Input = removal === "true" ? { password: null } : {};
  for (const [name, value] of Object.entries(mergeUtm(mergeRules(fields), shown))) {
    const text = withoutSpaces(name, textFieldOf(value));
    const isOmitted = shown ? text === shown[name as keyof LinkFormValues] : name === "slug" && text === "";
    if (!isOmitted) input[name] = toValue(name, text, value);
  }
  return mergeCard(input, shown);
}

function toValue(name: string, text: string, value: unknown): unknown {
  if (name === "archived") return toFlag(text);
  const field = formField(name);
  if (!field) return value;
  return field.read ? field.read(text) : text;
}

function toFlag(text: string): boolean | string {
  return text === "true" || text === "false" ? text === "true" : text;
}

function formField(name: string): FormField | undefined {
  return Object.hasOwn(FIELDS, name) ? FIELDS[name as FieldName] : undefined;
}

/** Returns the field of the form that shows an error: an object has one for each of its fields, a list has one. */
export function formFieldOf(field: string): string {
  const rule = ruleFieldOf(field);
  if (rule) return rule;
  const nested = field.replace(".", "_");
  return formField(nested) ? nested : (field.split(".")[0] ?? "");
}

export function toFormValues(fields: Input): LinkFormValues {
  const names = [...FIELD_NAMES, ...UTM_FIELDS];
  return Object.fromEntries(names.map((name) => [name, textFieldOf(fields[name])])) as LinkFormValues;
}

export function valuesOf(link: Link): LinkFormValues {
  const textOf = (name: FieldName) =>
    (FIELDS[name] as FormField).write?.(link) ?? String(link[camelCase(name) as keyof Link] ?? "");
  const values = Object.fromEntries(FIELD_NAMES.map((name) => [name, textOf(name)]));
  return { ...(values as Record<FieldName, string>), ...utmOf(link.url) };
}

function splitTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.trim());
  return tags.filter(Boolean);
}

function withoutSpaces(name: string, text: string): string {
  return formField(name)?.keepsSpaces ? text.replaceAll("\r\n", "\n") : text.trim();
}

function emptyToNull(text: string): string | null {
  return text.trim() === "" ? null : text;
}

/** Adds the time zone to a time that a browser sends without one: the form says that it is UTC. */
export function toUtcTime(text: string): string {
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
  hasPassword: boolean;
  errors: FieldErrors;
  /** The hosts that the link can have, with the value of each in the form. */
  hosts: ui.Options;
};

const OPTIONS: Partial<Record<FieldName, ui.Options>> = {
  redirect_type: [
    ["302", "302: temporary (default)"],
    ["301", "301: permanent"],
    ["307", "307: temporary, keeps the request method"],
    ["308", "308: permanent, keeps the request method"],
  ],
  forward_query: [
    ["true", "Added to the destination (default)"],
    ["false", "Left out"],
  ],
  forward_path: [
    ["false", "Not found (default)"],
    ["true", "Added to the destination"],
  ],
};

const ADVANCED = [
  ...(["expires_at", "max_clicks", "fallback_url", "password", "external_id"] as const),
  ...(["card_title", "card_description", "card_image_url"] as const),
];

/** Renders the form of a link, new or not, with the errors of the last attempt beside their fields. */
export function linkForm(options: FormOptions): Html {
  const { path, values, version, current, hosts } = options;
  const isNew = version === undefined;
  return html`${current && conflictPanel(current, values, hosts)}
<div class="beside">
<form method="post" action="${path}" class="panel stack" data-link-form>${ui.CSRF_FIELD}
${!isNew && html`<input type="hidden" name="version" value="${version}">`}
${basicFields(options, isNew)}
${utmFields(values)}
${rulesFields(values.rules, options.errors)}
${advancedFields(options)}
<div class="actions"><button type="submit">${isNew ? "Create link" : "Save link"}</button>${
    current && ui.linkButton(`${path}/edit`, "Reload", "quiet")
  }${ui.linkButton(path, "Cancel", "quiet")}</div>
</form>
${preview(values, hosts)}
</div>
<script type="module" src="${assetAddress("link-form.js")}"></script>`;
}

/** Renders what visitors see. The script keeps it current; nothing is loaded from the destination. */
function preview({ url, domain, slug, title }: LinkFormValues, hosts: ui.Options): Html {
  const parsed = URL.parse(toUrl(url));
  const path = parsed?.href.slice(parsed.href.indexOf(parsed.host) + parsed.host.length) ?? "";
  const shown = (name: string, value: string, empty: string) =>
    html`<span data-preview="${name}" data-empty="${empty}">${value.trim() || empty}</span>`;
  return html`<section class="panel preview" aria-labelledby="preview"><h2 id="preview">Preview</h2>
<dl class="facts">
<dt>Short link</dt><dd>${shown("domain", nameOf(hosts, domain), "")}/${shown("slug", slug, "…")}</dd>
<dt>Leads to</dt><dd><strong>${shown("host", parsed?.host ?? "", "…")}</strong>${shown("path", path, "")}</dd>
<dt>Title</dt><dd>${shown("title", title, "none")}</dd>
</dl>
<p class="hint">Without a password, visitors go straight to the destination. Chats and social networks follow the link, too, and show the title and image of the destination, not the title above. To choose what they show, fill in a card under More options.</p>
<p class="hint">With a + after the short link, they see the destination and this title first.</p>
</section>`;
}

function nameOf(options: ui.Options, value: string): string {
  return options.find(([option]) => option === value)?.[1] ?? value;
}

function conflictPanel(current: LinkFormValues, submitted: LinkFormValues, hosts: ui.Options): Html {
  const values = { ...submitted, ...mergeUtm(submitted, current) };
  const differing = FIELD_NAMES.filter(
    (name) => name !== "password" && current[name] !== withoutSpaces(name, values[name]),
  );
  if (differing.length === 0) return html`<p class="soft">Your values are the same as the current ones.</p>`;
  return table(
    "Differences",
    {
      Field: (name) => FIELDS[name].label,
      "Current value": (name) => shownValue(name, current[name], hosts),
      "Your value": (name) => shownValue(name, values[name], hosts),
    },
    differing,
  );
}

function shownValue(name: FieldName, value: string, hosts: ui.Options): Html {
  const options = name === "domain" ? hosts : OPTIONS[name];
  if (options) return html`${nameOf(options, value)}`;
  if (value.trim() === "" || value === "[]") return html`<span class="soft">empty</span>`;
  return html`<bdi>${ui.breakable(name === "expires_at" ? value.replace("T", " ") : value)}</bdi>`;
}

function basicFields(options: FormOptions, isNew: boolean): Html {
  const state = fieldState(options);
  return html`${urlField({ ...state("url"), isRequired: true, hasFocus: true })}
${ui.field({
  ...state("slug"),
  prefix: hostPrefix(options),
  hint: isNew
    ? "Letters, digits, - and _, and / between segments of up to 64. Leave empty for a random one."
    : "Changing this breaks the old short link.",
  attributes: html`maxlength="255" autocapitalize="none" autocomplete="off" spellcheck="false"${!isNew && html` required`}`,
})}
${options.errors.domain && html`<p class="error" id="domain-error">${options.errors.domain}</p>`}
${ui.field({ ...state("title"), hint: "Visible to your organization, and on the preview page of the link.", attributes: html`maxlength="255" autocomplete="off"` })}
${ui.field({ ...state("tags"), hint: "Separate tags with commas.", attributes: html`autocomplete="off"` })}`;
}

/** Renders the host before the slug; the choice of one if there are several. */
function hostPrefix(options: FormOptions): Html {
  const { hosts } = options;
  if (hosts.length === 1) return html`${hosts[0]?.[1]}/`;
  const state = fieldState(options)("domain");
  return html`<label for="domain" class="visually-hidden">${state.label}</label>${ui.selectBox({ ...state, options: hosts })}/`;
}

function advancedFields(options: FormOptions): Html {
  const { values, errors, hasPassword } = options;
  const state = fieldState(options);
  const choice = (name: FieldName, hint: string) =>
    ui.select({ ...state(name), options: OPTIONS[name] ?? [], hint });
  const isOpen =
    hasPassword ||
    ADVANCED.some((name) => values[name] || errors[name]) ||
    !["", "302"].includes(values.redirect_type) ||
    values.forward_query === "false" ||
    values.forward_path === "true";
  return html`<details class="more"${isOpen && html` open`}><summary class="opener">More options</summary><div class="stack">
${ui.field({ ...state("expires_at"), type: "datetime-local", hint: "After this time the link stops working. Leave empty for no expiry.", attributes: html`autocomplete="off"` })}
${ui.field({ ...state("max_clicks"), type: "number", hint: "After this many clicks, the link stops working. Bots and link previews count, too. Leave empty for no limit.", attributes: html`min="1" max="2147483647" inputmode="numeric"` })}
${choice("redirect_type", "Browsers don’t cache any of them, so every click is counted.")}
${choice("forward_query", "What visitors add to the short link, such as ?utm_source=mail. Parameters that the destination has are kept as they are.")}
${choice("forward_path", "What visitors add after the short link, such as /shoes.")}
${urlField({ ...state("fallback_url"), hint: "Visitors go here when the link is archived, expired or used up. Leave empty to use the organization’s fallback URL." })}
${ui.field({ ...state("password"), hint: passwordHint(hasPassword), attributes: html`maxlength="128" autocomplete="off" autocapitalize="none" spellcheck="false"` })}
${hasPassword && html`<label class="option"><input type="checkbox" name="${REMOVAL}" value="true"><span>Remove the password</span></label>`}
${ui.field({ ...state("external_id"), hint: "Your own ID for the link, to find it in the API.", attributes: html`maxlength="255" autocomplete="off" autocapitalize="none"` })}
${ui.field({ ...state("card_title"), hint: "Chats and social networks show it, with the description and image below, instead of a preview of the destination. Without a title, there is no card.", attributes: html`maxlength="255" autocomplete="off"` })}
${ui.textArea({ ...state("card_description"), attributes: html`class="prose" maxlength="500" rows="2" autocomplete="off"` })}
${urlField({ ...state("card_image_url"), hint: "1200 × 630 pixels suit most services." })}
</div></details>`;
}

function passwordHint(hasPassword: boolean): string {
  return hasPassword
    ? "Visitors have to enter the current password, which can’t be shown. Leave empty to keep it."
    : "Visitors have to enter it each time. At least 4 characters. Leave empty for none.";
}

function fieldState({ values, errors }: FormOptions) {
  return (name: FieldName) => ({ name, label: FIELDS[name].label, value: values[name], error: errors[name] });
}

export const UTM: Record<UtmField, { label: string; hint: string }> = {
  utm_source: { label: "Source", hint: "Where the link is shared, such as newsletter." },
  utm_medium: { label: "Medium", hint: "The channel, such as email or social." },
  utm_campaign: { label: "Campaign", hint: "Such as spring-sale." },
  utm_term: { label: "Term", hint: "The keyword of a search ad." },
  utm_content: {
    label: "Content",
    hint: "Distinguishes links of the same campaign, such as header or footer.",
  },
};

/** Returns the submitted fields, with the UTM fields that differ from those shown in the URL. */
function mergeUtm({ url, ...fields }: Input, shown?: Partial<UtmValues>): Input {
  if (url === undefined) return fields;
  const changed: Partial<UtmValues> = {};
  for (const name of UTM_FIELDS) {
    const value = textFieldOf(fields[name]).trim();
    if (fields[name] !== undefined && value !== (shown?.[name] ?? "")) changed[name] = value;
    delete fields[name];
  }
  return { url: withUtm(toUrl(url), changed), ...fields };
}

function utmFields(values: UtmValues): Html {
  const isOpen = UTM_FIELDS.some((name) => values[name] !== "");
  return html`<details class="more"${isOpen && html` open`}><summary class="opener">UTM parameters</summary><div class="stack">
<p class="hint">Tell your web analytics where visitors come from. A field that you change is set in the destination URL, or removed from it if it’s empty.</p>
${UTM_FIELDS.map((name) =>
  ui.field({ name, value: values[name], ...UTM[name], attributes: html`maxlength="255" autocomplete="off"` }),
)}
</div></details>`;
}

// A host with a dot, then a port, a path, a query, a fragment, or nothing.
const WITHOUT_SCHEME = /^[^./?#:@\s]+\.[^/?#:@\s]+(?::\d+)?(?:[/?#]|$)/;

/** Returns the URL that a user typed, with https:// if it starts with a host, as browsers understand it. */
export function toUrl(typed: unknown): string {
  const text = textFieldOf(typed).trim();
  return WITHOUT_SCHEME.test(text) ? `https://${text}` : text;
}

/** Renders a field for a URL whose scheme may be missing, which `type="url"` would reject. */
export function urlField({
  isRequired = false,
  hasFocus = false,
  hint,
  ...options
}: Parameters<typeof ui.field>[0] & { isRequired?: boolean; hasFocus?: boolean }): Html {
  return ui.field({
    ...options,
    hint: [hint, "You can leave out https://."].filter(Boolean).join(" "),
    attributes: html`inputmode="url" maxlength="2048" placeholder="https://example.com/page" autocomplete="off" autocapitalize="none" spellcheck="false"${isRequired && html` required`}${hasFocus && html` autofocus`}`,
  });
}
