import { DEVICES, RULES_MAX, SYSTEMS } from "../../../resources/links/redirect-rules.ts";
import type { Link } from "../../../resources/links/types.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { CONDITION_NAMES, CONDITIONS, isTime } from "../../ui/conditions.ts";
import { field, select } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "../../ui/text.ts";
import type { FieldErrors } from "../forms.ts";

/** A rule as the form has it: its URL, and its conditions that aren't empty. */
type FormRule = { if: Record<string, string>; url: string };
type Convert = (text: string) => string;

// Without JavaScript, saving adds more.
const EMPTY_RULES = 2;
const NAME = /^rule-(\d{1,2})-(\w{1,20})$/;

const OPTIONS = {
  device: [["", "Any"], ...DEVICES.map((device) => [device, capitalized(device)] as const)],
  os: [["", "Any"], ...SYSTEMS.map((system) => [system, system] as const)],
} as const;

const TEXTS = {
  language: html`placeholder="de" maxlength="35"`,
  country: html`placeholder="DE" maxlength="2"`,
  query: html`placeholder="ref=mail" maxlength="255"`,
};

/** Returns the submitted fields, with those of the rules as one text; rules without any value are left out. */
export function mergeRules({ rules: _, ...fields }: Input): Input {
  const others: Input = {};
  const rules = new Map<number, FormRule>();
  for (const [name, value] of Object.entries(fields)) {
    const [, index, part = ""] = NAME.exec(name) ?? [];
    if (index === undefined) others[name] = value;
    else addValue(rules, Number(index), part, textFieldOf(value).trim());
  }
  if (rules.size === 0) return others;
  const sorted = [...rules].sort(([one], [other]) => one - other).map(([, rule]) => rule);
  const filled = sorted.filter(({ if: conditions, url }) => url !== "" || Object.keys(conditions).length > 0);
  return { ...others, rules: JSON.stringify(filled) };
}

function addValue(rules: Map<number, FormRule>, index: number, part: string, value: string): void {
  const rule = rules.get(index) ?? { if: {}, url: "" };
  if (part === "url") rule.url = value;
  else if (value !== "") rule.if[part] = value;
  rules.set(index, rule);
}

/** Returns the field that shows an error of a rule, such as that of `rules.0.if.language`; the rule for one of all. */
export function ruleFieldOf(field: string): string | undefined {
  const [, index, part] = /^rules\.(\d{1,2})(?:\.if)?(?:\.(\w{1,20}))?$/.exec(field) ?? [];
  return index && ["rule", index, part].filter(Boolean).join("-");
}

/** Returns what the fields of the rules of a link, sent as they are shown, would be merged into. */
export function writeRules({ rules }: Pick<Link, "rules">): string {
  // A browser sends seconds only if there are any: other times keep theirs when a rule changes.
  const shownTime = (time?: string) => time?.slice(0, time.slice(16, 19) === ":00" ? 16 : 19);
  const shown = rules.map(({ if: conditions, url }) => {
    const values = CONDITION_NAMES.map((name) => [
      name,
      isTime(name) ? shownTime(conditions[name]) : conditions[name],
    ]);
    return { if: Object.fromEntries(values), url };
  });
  return JSON.stringify(shown);
}

/** Converts the merged text to the input of the service. */
export function readRules(text: string, toTime: Convert, toUrl: Convert): unknown {
  return rulesIn(text).map(({ if: conditions, url }) => ({
    if: Object.fromEntries(
      Object.entries(conditions).map(([name, value]) => [name, isTime(name) ? toTime(value) : value]),
    ),
    url: toUrl(url),
  }));
}

/** Only `mergeRules` and `writeRules` write this text; any other one is that of no rules. */
function rulesIn(text: string): FormRule[] {
  return text === "" ? [] : JSON.parse(text);
}

/** Renders the rules, and empty ones to fill in. */
export function rulesFields(text: string, errors: FieldErrors): Html {
  const rules = rulesIn(text);
  const shown = [...rules, ...Array.from({ length: EMPTY_RULES }, () => ({ if: {}, url: "" }))];
  return html`<details class="more"${rules.length > 0 && html` open`}><summary class="opener">Rules</summary><div class="stack">
<p class="hint">Send some visitors elsewhere, such as those with an iPhone. The first rule whose conditions all hold counts; everyone else goes to the destination URL. Empty a rule to remove it, and save for more empty ones.</p>
${errors.rules && html`<p class="error">${errors.rules}</p>`}
${shown.slice(0, RULES_MAX).map((rule, index) => ruleFields(rule, index, errors))}
</div></details>`;
}

function ruleFields({ if: conditions, url }: FormRule, index: number, errors: FieldErrors): Html {
  const state = (part: string, label: string, value: string) => ({
    name: `rule-${index}-${part}`,
    label,
    value,
    error: errors[`rule-${index}-${part}`],
  });
  const controls = CONDITION_NAMES.map((name) => {
    const common = state(name, CONDITIONS[name], conditions[name] ?? "");
    if (name === "device" || name === "os") return select({ ...common, options: OPTIONS[name] });
    if (isTime(name)) {
      const attributes = html`${common.value.length > 16 && html`step="1"`}`;
      return field({ ...common, type: "datetime-local", attributes });
    }
    const attributes = html`autocomplete="off" autocapitalize="none" spellcheck="false" ${TEXTS[name as keyof typeof TEXTS]}`;
    return field({ ...common, attributes });
  });
  const general = errors[`rule-${index}`];
  return html`<fieldset class="rule"><legend>Rule ${index + 1}</legend>
${general && html`<p class="error">${general}</p>`}
<div class="row">${controls}</div>
${field({ ...state("url", "Go to", url), isWide: true, attributes: html`inputmode="url" maxlength="2048" autocomplete="off" autocapitalize="none" spellcheck="false"` })}
</fieldset>`;
}
