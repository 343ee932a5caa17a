import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../../../resources/access/scopes.ts";
import { checkboxes, field, panelForm, textArea } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { OTHER_PLATFORM, PLATFORMS, type Platform } from "../../workload-identity/platforms.ts";
import type { FieldErrors } from "../responses.ts";

export type TrustRuleValues = {
  name: string;
  issuer: string;
  subject: string;
  audience: string;
  /** One `name=value` per line. */
  claims: string;
  scopes: string[];
};

type TrustRuleForm = {
  path: string;
  /** Any other text is another platform. */
  platform: string;
  values: TrustRuleValues;
  errors: FieldErrors;
};

export function trustRuleForm({ path, platform, values, errors }: TrustRuleForm): Html {
  const fields = html`<input type="hidden" name="platform" value="${platform}">
${tokenFields(platformOf(platform), values, errors)}
${checkboxes({
  name: "scopes",
  legend: "Permissions",
  options: API_SCOPES.map((scope) => [scope, SCOPE_DESCRIPTIONS[scope].replace(/\.$/, "")] as const),
  selected: values.scopes,
  error: errors.scopes && "Select at least one permission.",
})}`;
  return html`${platformLinks(path, platform)}
${panelForm({ action: path, submit: "Add trust rule", cancel: path }, fields)}`;
}

export function platformOf(key: string): Platform {
  return (Object.hasOwn(PLATFORMS, key) ? PLATFORMS[key] : undefined) ?? OTHER_PLATFORM;
}

function platformLinks(path: string, current: string): Html {
  const choices = [...Object.entries(PLATFORMS), ["other", OTHER_PLATFORM] as const];
  return html`<nav class="tabs" aria-label="Platform"><ul>
${choices.map(([key, { name }]) => {
  const isCurrent = platformOf(current).name === name;
  return html`<li><a href="${path}/new?platform=${key}"${isCurrent && html` aria-current="page"`}>${name}</a></li>
`;
})}</ul></nav>`;
}

function tokenFields(platform: Platform, values: TrustRuleValues, errors: FieldErrors): Html {
  const state = (name: Exclude<keyof TrustRuleValues, "scopes">) => ({
    name,
    value: values[name],
    error: errors[name],
  });
  const plain = html`required maxlength="255" autocapitalize="none" autocomplete="off" spellcheck="false"`;
  return html`${field({ ...state("name"), label: "Name", isWide: true, hint: "For your own use, such as the name of the workflow.", attributes: html`required maxlength="100" autocomplete="off"` })}
${field({ ...state("issuer"), label: "Issuer", isWide: true, hint: "The iss claim of the tokens. Their keys are found at this URL.", attributes: html`${plain} placeholder="https://"` })}
${field({ ...state("subject"), label: "Subject", isWide: true, hint: `${platform.subjectHint} A * at the end matches anything.`, attributes: html`${plain} placeholder="${platform.subjectExample}"` })}
${field({ ...state("audience"), label: "Audience", isWide: true, hint: "The aud claim of the tokens. Workloads request their tokens for it.", attributes: plain })}
${textArea({ ...state("claims"), label: "Further claims (optional)", hint: `One name=value per line. ${platform.claimHint}`, attributes: html`placeholder="${platform.claimExample}"` })}`;
}
