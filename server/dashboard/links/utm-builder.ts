import { type Input, textFieldOf } from "../../http/request-body.ts";
import { field } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { UTM_FIELDS, type UtmField, withUtm } from "../../ui/utm.js";
import { toUrl } from "./url-field.ts";

export type UtmValues = Record<UtmField, string>;

const FIELDS: Record<UtmField, { label: string; hint: string }> = {
  utm_source: { label: "Source", hint: "Where the link is shared, such as newsletter." },
  utm_medium: { label: "Medium", hint: "The kind of place, such as email." },
  utm_campaign: { label: "Campaign", hint: "Such as spring-sale." },
  utm_term: { label: "Term", hint: "The keyword of a search ad." },
  utm_content: {
    label: "Content",
    hint: "Distinguishes links of the same campaign, such as header or footer.",
  },
};

/** Returns the submitted fields, with the UTM fields that differ from those shown in the URL. */
export function mergeUtm({ url, ...fields }: Input, shown?: Partial<UtmValues>): Input {
  if (url === undefined) return fields;
  const changed: Partial<UtmValues> = {};
  for (const name of UTM_FIELDS) {
    const value = textFieldOf(fields[name]).trim();
    if (fields[name] !== undefined && value !== (shown?.[name] ?? "")) changed[name] = value;
    delete fields[name];
  }
  return { url: withUtm(toUrl(url), changed), ...fields };
}

/** Renders the fields of the UTM parameters of the destination. */
export function utmFields(values: UtmValues): Html {
  const isOpen = UTM_FIELDS.some((name) => values[name] !== "");
  return html`<details class="more"${isOpen && html` open`}><summary class="opener">UTM parameters</summary><div class="stack">
<p class="hint">Tell your web analytics where visitors come from. A field that you change is set in the destination URL, or removed from it if it’s empty.</p>
${UTM_FIELDS.map((name) =>
  field({ name, value: values[name], ...FIELDS[name], attributes: html`maxlength="255" autocomplete="off"` }),
)}
</div></details>`;
}
