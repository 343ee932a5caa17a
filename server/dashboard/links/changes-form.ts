import type { FieldError } from "../../../resources/http/problem.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { field } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { toSentence } from "../forms.ts";
import { toUtcTime, UTM } from "./form.ts";

const PARAMETERS = Object.entries(UTM).map(([name, { label }]) => ({
  name: name.replace("utm_", ""),
  label,
}));

/** Converts the fields of the form to changes. Empty ones change nothing, unless a checkbox says that they remove. */
export function readChanges(fields: Input): object {
  const read = (name: string) => textFieldOf(fields[name]).trim();
  const [expiry, replacement] = [read("expires_at"), { find: read("find"), with: read("with") }];
  const utm = PARAMETERS.map(({ name }) => [name, read(name) || null]);
  const given = utm.filter(([, value]) => value !== null || fields.removes_utm === "true");
  return {
    ...(fields.removes_expiry === "true" && { expires_at: null }),
    ...(expiry && { expires_at: toUtcTime(expiry) }),
    ...(Object.values(replacement).some(Boolean) && { replace_in_url: replacement }),
    ...(given.length > 0 && { utm: Object.fromEntries(given) }),
  };
}

/** Renders the fields of changes to several links, with what was entered and what is wrong with it. */
export function changesFields(fields: Input, errors: readonly FieldError[] = []): Html {
  const input = (name: string, label: string, hint?: string, type = "text") => {
    const { message } = errors.find((error) => error.field.split(".").at(-1) === name) ?? {};
    const error = message && toSentence(message);
    const attributes = html`maxlength="2048" autocapitalize="none" autocomplete="off" spellcheck="false"`;
    return field({ name, label, hint, type, error, attributes, value: textFieldOf(fields[name]) });
  };
  const checkbox = (name: string, text: string) =>
    html`<label class="option"><input type="checkbox" name="${name}" value="true"${fields[name] === "true" && html` checked`}>${text}</label>`;
  const isEmpty = errors.some((error) => error.field === "changes");
  return html`<p class="${isEmpty ? "error" : "hint"}">${isEmpty ? "Enter at least one change." : "What you leave empty stays as it is."}</p>
${input("expires_at", "Expires (UTC)", undefined, "datetime-local")}
${checkbox("removes_expiry", "Remove the expiry")}
${input("find", "Find in the destination", "Exactly this text, wherever it occurs.")}
${input("with", "Replace with", "Leave empty to remove the text.")}
${PARAMETERS.map(({ name, label }) => input(name, `UTM ${label.toLowerCase()}`))}
${checkbox("removes_utm", "Remove UTM parameters that are empty")}`;
}
