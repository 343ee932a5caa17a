import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../../../resources/access/scopes.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import { checkboxes, field, panelForm, select, textArea } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { PLATFORMS, type Platform, type PlatformField } from "../../workload-identity/platforms.ts";
import type { FieldErrors } from "../forms.ts";

type TrustRuleForm = {
  path: string;
  /** Any other text is another issuer. */
  platform: string;
  /** What was submitted, or what the form starts with. */
  values: Input;
  errors: FieldErrors;
};

const PLAIN = html`maxlength="255" autocapitalize="none" autocomplete="off" spellcheck="false"`;

export function trustRuleForm({ path, platform: key, values, errors }: TrustRuleForm): Html {
  const state = (name: string) => ({ name, value: textFieldOf(values[name]), error: errors[name] });
  const platform = platformOf(key);
  const fields = html`<input type="hidden" name="platform" value="${key}">
${field({ ...state("name"), label: "Name", isWide: !platform, hint: "For your own use, such as the name of the workflow.", attributes: html`required maxlength="100" autocomplete="off"` })}
${platform ? Object.entries(platform.fields).map(([name, one]) => platformField(one, state(name))) : tokenFields(state)}
${checkboxes({
  name: "scopes",
  legend: "Permissions",
  options: API_SCOPES.map((scope) => [scope, SCOPE_DESCRIPTIONS[scope].replace(/\.$/, "")] as const),
  selected: [values.scopes ?? []].flat().map(textFieldOf),
  error: errors.scopes && "Select at least one permission.",
})}`;
  return html`${platformLinks(path, key)}
${panelForm({ action: path, submit: "Add trust rule", cancel: path }, fields)}`;
}

/** Returns undefined for another issuer, whose rules have the claims of its tokens as fields. */
export function platformOf(key: string): Platform | undefined {
  return Object.hasOwn(PLATFORMS, key) ? PLATFORMS[key] : undefined;
}

function platformLinks(path: string, current: string): Html {
  const choices = [...Object.entries(PLATFORMS), ["other", { name: "Other issuer" }] as const];
  return html`<nav class="tabs" aria-label="Platform"><ul>
${choices.map(([key, { name }]) => {
  const isCurrent = platformOf(current) === platformOf(key);
  return html`<li><a href="${path}/new?platform=${key}"${isCurrent && html` aria-current="page"`}>${name}</a></li>
`;
})}</ul></nav>`;
}

type State = { name: string; value: string; error: string | undefined };

function platformField(one: PlatformField, state: State): Html {
  const { label, hint, placeholder = "", isOptional } = one;
  if ("options" in one) return select({ ...state, label, hint, options: Object.entries(one.options) });
  const required = !isOptional && html`required `;
  return field({ ...state, label, hint, attributes: html`${required}${PLAIN} placeholder="${placeholder}"` });
}

function tokenFields(state: (name: string) => State): Html {
  const required = html`required ${PLAIN}`;
  return html`${field({ ...state("issuer"), label: "Issuer", isWide: true, hint: "The iss claim of the tokens. Their keys are found at this URL.", attributes: html`${required} placeholder="https://"` })}
${field({ ...state("subject"), label: "Subject", isWide: true, hint: "The sub claim of the tokens. A * at the end matches anything.", attributes: required })}
${field({ ...state("audience"), label: "Audience", isWide: true, hint: "The aud claim of the tokens. Workloads request their tokens for it.", attributes: required })}
${textArea({ ...state("claims"), label: "Further claims (optional)", hint: "One name=value per line, which the tokens must have besides iss, sub and aud." })}`;
}
