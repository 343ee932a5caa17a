import { type Html, html } from "./html.ts";

/** Returns the hidden CSRF field of a form, or nothing if there is no session to protect. */
export function csrfField(csrf: string | undefined): Html {
  return csrf ? html`<input type="hidden" name="csrf" value="${csrf}">` : html``;
}

type Look = "primary" | "quiet" | "danger";

/** Renders a form that consists of a single button. */
export function formButton({
  action,
  csrf,
  text,
  about,
  look = "quiet",
  fields = {},
}: {
  action: string;
  csrf: string | undefined;
  text: string;
  /** Distinguishes buttons with the same text for screen readers. */
  about?: string;
  look?: Look;
  fields?: Record<string, string>;
}): Html {
  return html`<form method="post" action="${action}" class="inline">${csrfField(csrf)}${Object.entries(
    fields,
  ).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<button type="submit" class="${look}">${text}${
    about ? html`<span class="visually-hidden"> ${about}</span>` : html``
  }</button></form>`;
}

/**
 * Renders a link that looks like a button.
 * @param about distinguishes links with the same text for screen readers
 */
export function linkButton(href: string, text: string, look: Look = "primary", about?: string): Html {
  return html`<a class="button ${look}" href="${href}">${text}${
    about ? html`<span class="visually-hidden"> ${about}</span>` : html``
  }</a>`;
}

type Field = {
  name: string;
  label: string;
  value?: string | number | undefined;
  hint?: string;
  /** Why the value was rejected. */
  error?: string | undefined;
};

/** Renders a labeled input; screen readers read its hint and error along with it. */
export function field({
  type = "text",
  isWide = false,
  attributes = html``,
  ...field
}: Field & {
  type?: string;
  /** Whether the value is usually long, such as a URL. */
  isWide?: boolean;
  /** Further attributes, such as `required`. */
  attributes?: Html;
}): Html {
  const { name, label, value = "" } = field;
  return html`<div class="field${isWide ? " wide" : ""}"><label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" value="${value}"${describedBy(field)} ${attributes}>${about(field)}</div>`;
}

/** Renders a labeled drop-down list. */
export function select({
  options,
  ...field
}: Field & { options: readonly (readonly [value: string, name: string])[] }): Html {
  const { name, label, value } = field;
  return html`<div class="field"><label for="${name}">${label}</label>
<select id="${name}" name="${name}"${describedBy(field)}>${options.map(
    ([option, text]) =>
      html`<option value="${option}"${option === value ? html` selected` : html``}>${text}</option>`,
  )}</select>${about(field)}</div>`;
}

/** Renders a labeled input for several lines. */
export function textArea({ attributes = html``, ...field }: Field & { attributes?: Html }): Html {
  const { name, label, value = "" } = field;
  return html`<div class="field wide"><label for="${name}">${label}</label>
<textarea id="${name}" name="${name}" spellcheck="false"${describedBy(field)} ${attributes}>${value}</textarea>${about(field)}</div>`;
}

function about({ name, hint, error }: Field): Html {
  return html`${error ? html`<p class="error" id="${name}-error">${error}</p>` : html``}${
    hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : html``
  }`;
}

function describedBy({ name, hint, error }: Field): Html {
  const ids = [error && `${name}-error`, hint && `${name}-hint`].filter(Boolean).join(" ");
  return html`${ids ? html` aria-describedby="${ids}"` : html``}${error ? html` aria-invalid="true"` : html``}`;
}

/**
 * Renders a value with a button that copies it. The script reveals the button; without it, a click selects the whole
 * value.
 */
export function copyable(value: string, label: string): Html {
  return html`<span class="copyable"><code>${value}</code>${copyButton(value, label)}</span>`;
}

/** Renders a copy button, which the script reveals. */
export function copyButton(value: string, label: string): Html {
  return html`<button type="button" class="quiet small" data-copy="${value}" hidden>Copy<span class="visually-hidden"> ${label}</span></button>`;
}

/** Renders a time such as “Nov 22, 2026, 14:05 UTC”, or “never” for null. */
export function time(at: number | null): Html {
  if (at === null) return html`<span class="soft">never</span>`;
  return html`<time datetime="${new Date(at).toISOString()}"><span>${formatDay(at)},</span> <span>${hourOf(at)}</span></time>`;
}

/** Renders the date of a time, such as “Nov 22, 2026”. */
export function day(at: number): Html {
  return html`<time datetime="${new Date(at).toISOString()}">${formatDay(at)}</time>`;
}

/** Returns a time as plain text, such as “Nov 22, 2026, 14:05 UTC”. */
export function formatTime(at: number): string {
  return `${formatDay(at)}, ${hourOf(at)}`;
}

/** Returns a date as plain text, such as “Nov 22, 2026”. */
export function formatDay(at: number): string {
  return DAY_FORMAT.format(at);
}

const DAY_FORMAT = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeZone: "UTC" });

function hourOf(at: number): string {
  return `${new Date(at).toISOString().slice(11, 16)} UTC`;
}

/** Allows line breaks in a name or URL after its separators, and nowhere else. */
export function breakable(text: string): Html {
  return html`${text.split(/(?<=[/@.?&=_-])(?![/@.?&=_-])/).map((part, index) => html`${index > 0 ? html`<wbr>` : html``}${part}`)}`;
}

/** Renders a short status label. */
export function badge(text: string, kind: "neutral" | "good" | "warn" | "bad" = "neutral"): Html {
  return html`<span class="badge ${kind}">${text}</span>`;
}
