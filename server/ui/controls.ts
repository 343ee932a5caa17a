import { hash } from "node:crypto";
import { assetAddress } from "./asset-files.ts";
import { type Html, html, trusted } from "./html.ts";
import { formatDay, hourOf, relativeTime } from "./text.ts";

const ICONS = assetAddress("icons.svg");
// Escaped values can't contain it.
const CSRF_PLACE = "<csrf>";

/** The place of the hidden field with the CSRF token, which each form of the dashboard needs; `withCsrf` fills it in. */
export const CSRF_FIELD = trusted(CSRF_PLACE);

/** Fills in the CSRF token of a page's forms, or nothing if there is no session to protect. */
export function withCsrf(page: string, csrf: string | undefined): string {
  const field = csrf ? hidden("csrf", csrf) : html``;
  return page.replaceAll(CSRF_PLACE, () => field.toString());
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** Renders an icon of `assets/icons.svg`. It says nothing to screen readers, so a name stands beside it. */
export function icon(name: string): Html {
  return html`<svg class="icon" aria-hidden="true"><use href="${ICONS}#${name}"/></svg>`;
}

/** Renders a bar that is filled to a share, from 0 to 1. The number stands beside it. */
export function meter(share: number): Html {
  return html`<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="${Math.ceil(share * 100)}" height="4"/></svg>`;
}

const HUES = 4;

/** Renders the first letter of a name on a tile, whose color depends on the name; names that apps claim are quoted. */
export function initial(name: string): Html {
  const hue = hash("sha256", name, "buffer").readUInt8() % HUES;
  return html`<span class="initial hue-${hue}" aria-hidden="true">${[...name.replace(/^“/, "")][0]?.toUpperCase()}</span>`;
}

/** Renders a name in a list, with its tile before it. */
export function named(tile: Html, name: Html): Html {
  return html`<span class="named">${tile}<span>${name}</span></span>`;
}

type Look = "primary" | "quiet" | "danger";

export function formButton({
  action,
  text,
  about,
  look = "quiet",
  error,
  fields = {},
}: {
  action: string;
  text: string;
  /** Distinguishes buttons with the same text for screen readers. */
  about?: string;
  look?: Look;
  error?: string | undefined;
  fields?: Record<string, string>;
}): Html {
  return html`<form method="post" action="${action}" class="inline">${CSRF_FIELD}${Object.entries(fields).map(
    ([name, value]) => hidden(name, value),
  )}${submitButton(textAbout(text, about), look, error)}</form>`;
}

/** Renders the button of a form. Without a field that is wrong, the error stands there, and the button gets the focus. */
export function submitButton(text: Html | string, look: Look, error: string | undefined): Html {
  return html`${error && html`<p class="alert bad" role="alert" id="error">${error}</p>`}<button type="submit" class="${look}"${error && html` autofocus aria-describedby="error"`}>${text}</button>`;
}

type PanelForm = {
  action: string;
  submit: string;
  cancel: string;
  /** Warns of a change that can't be undone, by its button or by the whole panel. */
  danger?: "button" | "panel";
};

/** Renders a form in a panel of its own, which ends with its button and Cancel. */
export function panelForm({ action, submit, cancel, danger }: PanelForm, content: Html): Html {
  return html`<form method="post" action="${action}" class="panel narrow${danger === "panel" ? " danger" : ""} stack">${CSRF_FIELD}
${content}
<div class="actions"><button type="submit"${danger && html` class="danger"`}>${submit}</button>${linkButton(cancel, "Cancel", "quiet")}</div>
</form>`;
}

type SettingPanel = { id?: string; title: string; text: Html | string; isDangerous?: boolean };

/** Renders a setting in a panel of its own: what it means, and its control beside it. */
export function settingPanel({ id, title, text, isDangerous }: SettingPanel, control: Html): Html {
  return html`<section${id && html` id="${id}"`} class="panel${isDangerous && html` danger`} setting"><div><h2>${title}</h2><p class="soft">${text}</p></div>
<div>${control}</div></section>
`;
}

/** `about` distinguishes links with the same text for screen readers. */
export function linkButton(href: string, text: string, look: Look = "primary", about?: string): Html {
  return html`<a class="button ${look}" href="${href}">${textAbout(text, about)}</a>`;
}

function textAbout(text: string, about: string | undefined): Html {
  return html`${text}${about && html`<span class="visually-hidden"> ${about}</span>`}`;
}

type Field = {
  name: string;
  label: string;
  /** Whether only screen readers get the label. */
  hidesLabel?: boolean;
  value?: string | number | undefined;
  /** What the value follows, inside the border of the field. */
  prefix?: Html;
  hint?: string | undefined;
  error?: string | undefined;
};

/** Renders a labeled input; screen readers read its prefix, hint and error along with it. */
export function field({
  type = "text",
  isWide = false,
  attributes = html``,
  ...field
}: Field & { type?: string; isWide?: boolean; attributes?: Html }): Html {
  const { name, value = "", prefix } = field;
  const input = html`<input id="${name}" name="${name}" type="${type}" value="${value}"${describedBy(field)} ${attributes}>`;
  return html`<div class="field${isWide ? " wide" : ""}">${labelOf(field)}
${prefix ? html`<div class="prefixed"><span id="${name}-prefix">${prefix}</span>${input}</div>` : input}${about(field)}</div>`;
}

export type Options = readonly (readonly [value: string, name: string])[];

type Select = Field & { options: Options; groups?: readonly (readonly [label: string, options: Options])[] };

export function select(field: Select): Html {
  return html`<div class="field">${labelOf(field)}
${selectBox(field)}${about(field)}</div>`;
}

/** Renders only the control of `select`. */
export function selectBox({ options, groups = [], ...field }: Select): Html {
  const { name, value } = field;
  const render = (listed: Options) =>
    listed.map(
      ([option, text]) =>
        html`<option value="${option}"${option === value && html` selected`}>${text}</option>`,
    );
  return html`<select id="${name}" name="${name}"${describedBy(field)}>${render(options)}${groups.map(
    ([label, listed]) => html`<optgroup label="${label}">${render(listed)}</optgroup>`,
  )}</select>`;
}

type Checkboxes = {
  name: string;
  legend: string;
  options: readonly (readonly [value: string, meaning: string])[];
  selected: readonly string[];
  error: string | undefined;
};

export function checkboxes({ name, legend, options, selected, error }: Checkboxes): Html {
  return html`<fieldset${error && html` aria-describedby="${name}-error"`}><legend>${legend}</legend>
${about({ name, error })}
${options.map(
  ([value, meaning]) => html`<label class="option"><input type="checkbox" name="${name}" value="${value}"${
    selected.includes(value) && html` checked`
  }><span>${meaning} <code class="soft">${value}</code></span></label>
`,
)}</fieldset>`;
}

export function textArea({ attributes = html``, ...field }: Field & { attributes?: Html }): Html {
  const { name, value = "" } = field;
  return html`<div class="field wide">${labelOf(field)}
<textarea id="${name}" name="${name}" spellcheck="false"${describedBy(field)} ${attributes}>${value}</textarea>${about(field)}</div>`;
}

function labelOf({ name, label, hidesLabel }: Field): Html {
  return html`<label for="${name}"${hidesLabel && html` class="visually-hidden"`}>${label}</label>`;
}

function about({ name, hint, error }: Pick<Field, "name" | "hint" | "error">): Html {
  return html`${error && html`<p class="error" id="${name}-error">${error}</p>`}${
    hint && html`<p class="hint" id="${name}-hint">${hint}</p>`
  }`;
}

function describedBy({ name, prefix, hint, error }: Field): Html {
  return describing([prefix && `${name}-prefix`, error && `${name}-error`, hint && `${name}-hint`], error);
}

/** Renders the attributes that link a field to what describes it, for screen readers. */
export function describing(ids: (string | undefined)[], error: string | undefined): Html {
  const described = ids.filter(Boolean).join(" ");
  return html`${described && html` aria-describedby="${described}"`}${error && html` aria-invalid="true"`}`;
}

/** Without scripts, there is no button, and a click selects the whole value. `more` is what else can be done with it. */
export function copyable(value: string, label: string, more = html``): Html {
  return html`<span class="copyable"><code>${value}</code>${copyButton(value, label)}${more}</span>`;
}

export function copyButton(value: string, label: string): Html {
  return html`<button type="button" class="quiet small" data-copy="${value}">${textAbout("Copy", label)}</button>`;
}

/** Like `copyButton`, with an icon. */
export function copyIcon(value: string, label: string): Html {
  return html`<button type="button" class="glyph" data-copy="${value}">${icon("copy")}<span class="visually-hidden">Copy ${label}</span></button>`;
}

const NEVER = html`<span class="soft">never</span>`;

/** Renders a time such as “Nov 22, 2026, 14:05 UTC”, or “never” for null. */
export function time(at: number | null): Html {
  if (at === null) return NEVER;
  return timeOfDay(at, hourOf(at));
}

/** Renders a time as `time` does, or “now” if it is past. */
export function timeOrNow(at: number): Html {
  return at <= Date.now() ? html`now` : time(at);
}

/** As `time`, with seconds, such as “Nov 22, 2026, 14:05:09 UTC”. */
export function exactTime(at: number): Html {
  return timeOfDay(at, `${new Date(at).toISOString().slice(11, 19)} UTC`);
}

function timeOfDay(at: number, text: string): Html {
  return html`<time datetime="${new Date(at).toISOString()}"><span>${formatDay(at)},</span> <span>${text}</span></time>`;
}

/** Renders a time of this week as seen from now, with the exact time on hover, another one by its day. */
export function day(at: number | null): Html {
  if (at === null) return NEVER;
  const iso = new Date(at).toISOString();
  const text = relativeTime(at);
  return html`<time datetime="${iso}" data-precision="day"${text && html` title="${iso.slice(0, 19).replace("T", " ")} UTC"`}>${text ?? formatDay(at)}</time>`;
}

/** Allows line breaks in a name or URL after its separators, and nowhere else. */
export function breakable(text: string): Html {
  return html`${text.split(/(?<=[/@.?&=_-])(?![/@.?&=_-])/).map((part, index) => html`${index > 0 && html`<wbr>`}${part}`)}`;
}

export function badge(text: string, kind: "neutral" | "good" | "warn" | "bad" = "neutral"): Html {
  return html`<span class="badge ${kind}">${text}</span>`;
}
