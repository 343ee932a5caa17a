import { type Html, html } from "../html.ts";

/** The hidden field that proves a form to be ours; nothing where there is no session. */
export function csrfField(csrf: string | undefined): Html {
  return csrf ? html`<input type="hidden" name="csrf" value="${csrf}">` : html``;
}

type Look = "primary" | "quiet" | "danger";

/** A button that sends a form of its own. */
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
  /** Tells buttons of the same text apart, for those who hear them one by one. */
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

/** A link that looks like a button. */
export function linkButton(href: string, text: string, look: Look = "primary"): Html {
  return html`<a class="button ${look}" href="${href}">${text}</a>`;
}

type Field = {
  name: string;
  label: string;
  value?: string | number | undefined;
  hint?: string;
  /** What is wrong with the value. */
  error?: string | undefined;
};

/** A labelled line to fill in; the hint, and what is wrong with it, are read out with it. */
export function field({
  type = "text",
  attributes = html``,
  ...field
}: Field & {
  type?: string;
  /** Further attributes, such as `required`. */
  attributes?: Html;
}): Html {
  const { name, label, value = "" } = field;
  return html`<div class="field"><label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" value="${value}"${describedBy(field)} ${attributes}>${about(field)}</div>`;
}

/** A labelled choice: pairs of value and name. */
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
 * A value to take along, with a button that copies it. The button appears with the script; without it the value can be
 * selected as a whole.
 */
export function copyable(value: string, label: string): Html {
  return html`<span class="copyable"><code>${value}</code>${copyButton(value, label)}</span>`;
}

/** The copy button alone. */
export function copyButton(value: string, label: string): Html {
  return html`<button type="button" class="quiet small" data-copy="${value}" hidden>Copy<span class="visually-hidden"> ${label}</span></button>`;
}

/** A time that everybody reads alike; a dash for never. */
export function time(at: number | null): Html {
  if (at === null) return html`<span class="soft">never</span>`;
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}"><span>${iso.slice(0, 10)}</span> <span>${iso.slice(11, 16)} UTC</span></time>`;
}

/** The day of a time, where the hour tells nobody anything. */
export function day(at: number): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)}</time>`;
}

/** A name or an address that may be broken where its parts end, and nowhere else. */
export function breakable(text: string): Html {
  return html`${text.split(/(?<=[/@.?&=_-])(?![/@.?&=_-])/).map((part, index) => html`${index > 0 ? html`<wbr>` : html``}${part}`)}`;
}

/** A short word about the state of something. */
export function badge(text: string, kind: "neutral" | "good" | "warn" | "bad" = "neutral"): Html {
  return html`<span class="badge ${kind}">${text}</span>`;
}
