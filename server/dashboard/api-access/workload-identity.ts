import type { Context } from "koa";
import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { API_SCOPES, SCOPE_DESCRIPTIONS } from "../../../resources/access/scopes.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { pageReader } from "../../docs/guides.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import {
  createTrustRule,
  deleteTrustRule,
  listTrustRules,
  parseClaims,
} from "../../operations/trust-rules.ts";
import * as ui from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, tabs } from "../../ui/table.ts";
import { PLATFORMS, type Platform, type PlatformField } from "../../workload-identity/platforms.ts";
import { composeTrustRule } from "../../workload-identity/trust-rules.ts";
import { membershipOf } from "../access.ts";
import { type FieldErrors, formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { exampleIn, type Snippet, snippetFigures } from "./quick-start.ts";
import { addTab, clientOf, tabPath } from "./tabs.ts";

const PLAIN = html`maxlength="255" autocapitalize="none" autocomplete="off" spellcheck="false"`;
const INTRO = "Let GitHub Actions, GitLab and Kubernetes call the API without a secret.";

export const workloadIdentityRoutes: RouteModule = (router, options) => {
  const { clients, trustRules } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "workload-identity");

  addTab(router, options, "workload-identity", listTrustRules, async (ctx, { clientId }) => {
    const rules = await trustRules.list(membershipOf(ctx).id);
    return workloadIdentityPage(to(ctx), rules, workloadQuickStarts(options.urls, clientId));
  });

  addOperationPage(router, options, createTrustRule, {
    path: `${ORGANIZATION}/workload-identity/new`,
    section: "client",
    toInput: ruleOf,
    to,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = fieldErrorsOf(problem);
      const submitted = problem && (await formFieldsOf(ctx));
      const platform = textFieldOf(submitted ? submitted.platform : ctx.query.platform) || "github";
      const values = submitted ?? defaultsOf(platform, options.urls.base);
      const body = trustRuleForm(to(ctx), platform, values, errors);
      return { title: "Add trust rule", ...error, body };
    },
  });
  addOperation(router, options, deleteTrustRule, { to });
};

/** The form has the fields of a platform, from which a rule is composed, or those of a rule with its claims as lines. */
function ruleOf({ platform, ...fields }: Input): Input {
  const input = { ...fields, scopes: [fields.scopes ?? []].flat() };
  const known = platformOf(textFieldOf(platform));
  if (known) return composeTrustRule(known, input);
  const lines = textFieldOf(fields.claims).split("\n");
  return { ...input, claims: parseClaims(lines.filter((line) => line.trim())) };
}

function defaultsOf(platform: string, audience: string): Input {
  const fields = Object.entries(platformOf(platform)?.fields ?? {});
  const initial = Object.fromEntries(fields.map(([name, { initial = "" }]) => [name, initial]));
  return { audience, ...initial, scopes: "links:write" };
}

/** The form has one field for all claims, so its error says which claim is meant. */
function fieldErrorsOf(problem: Problem | undefined) {
  const { error, errors } = splitFieldErrors(problem);
  const claim = problem?.errors?.find(({ field }) => field.startsWith("claims."));
  const claims = claim && `${claim.field.slice("claims.".length)} ${claim.message}.`;
  return { ...(error && { error }), errors: { ...errors, ...(claims && { claims }) } };
}

const readDocument = pageReader("workload-identity.md");

/** Returns the configurations of the documentation, for this server and a client. */
export function workloadQuickStarts(urls: PublicUrls, clientId: string): Snippet[] {
  return Object.entries(PLATFORMS).map(([key, { name: title, note }]) => {
    const code = exampleIn(readDocument(`${title} without a secret`), urls, clientId);
    return { name: key, title, note, code };
  });
}

function workloadIdentityPage(path: string, rules: TrustRule[], snippets: Snippet[]): Html {
  const add = ui.linkButton(`${path}/new`, "Add trust rule");
  const heading = (action: Html) => html`<div class="title"><div><h2>Trust rules</h2>
<p class="intro">${INTRO}</p></div>${action}</div>`;
  const quickStarts = html`<section class="group"><div class="title"><div><h2>Quick starts</h2>
<p class="intro">Each example gets a 15-minute token and creates a link.</p></div></div>
${snippetFigures(snippets, (title) => html`<h3>${title}</h3>`)}</section>`;
  if (rules.length === 0) {
    const text = "Add a rule for each repository or service account you trust.";
    return html`${heading(html``)}${emptyState("No trust rules yet", text, add)}${quickStarts}`;
  }
  const isFull = rules.length >= MAX_TRUST_RULES;
  const count = `${rules.length} of ${MAX_TRUST_RULES} trust rules.${isFull ? " Delete one to add another." : ""}`;
  const panels = rules.map((rule) => rulePanel(rule, path));
  return html`${heading(isFull ? html`` : add)}${panels}<p class="soft">${count}</p>${quickStarts}`;
}

function rulePanel(rule: TrustRule, path: string): Html {
  const { id, name, scopes, createdBy, createdAt, lastUsedAt } = rule;
  const about = `trust rule ${name}`;
  return html`<section class="panel"><div class="title"><h3>${name}</h3>
${ui.formButton({ action: `${path}/${id}/delete`, text: "Delete", about, look: "danger" })}</div>
<dl class="facts">${requiredClaims(rule)}
<dt>Permissions</dt><dd><span class="tags">${scopes.map((scope) => ui.badge(scope))}</span></dd>
<dt>Added</dt><dd>${ui.time(createdAt)} by ${createdBy}</dd>
<dt>Last used</dt><dd>${ui.time(lastUsedAt)}</dd></dl>
</section>
`;
}

function requiredClaims({ issuer, subject, audience, claims }: TrustRule): Html {
  const required = { Issuer: issuer, Subject: subject, Audience: audience, ...claims };
  return html`${Object.entries(required).map(
    ([name, value]) => html`<dt>${name}</dt><dd><code>${ui.breakable(value)}</code></dd>`,
  )}`;
}

/** `key` names a platform; any other text means another issuer. `values` are what was submitted, or the defaults. */
function trustRuleForm(path: string, key: string, values: Input, errors: FieldErrors): Html {
  const state = (name: string) => ({ name, value: textFieldOf(values[name]), error: errors[name] });
  const platform = platformOf(key);
  const fields = html`<input type="hidden" name="platform" value="${key}">
${ui.field({ ...state("name"), label: "Name", isWide: !platform, hint: "For your own use, such as the name of the workflow.", attributes: html`required maxlength="100" autocomplete="off"` })}
${platform ? Object.entries(platform.fields).map(([name, one]) => platformField(one, state(name))) : tokenFields(state)}
${ui.checkboxes({
  name: "scopes",
  legend: "Permissions",
  options: API_SCOPES.map((scope) => [scope, SCOPE_DESCRIPTIONS[scope].replace(/\.$/, "")] as const),
  selected: [values.scopes ?? []].flat().map(textFieldOf),
  error: errors.scopes && "Select at least one permission.",
})}`;
  return html`${platformLinks(path, key)}
${ui.panelForm({ action: path, submit: "Add trust rule", cancel: path }, fields)}`;
}

/** Returns undefined for another issuer, whose rules have the claims of its tokens as fields. */
function platformOf(key: string): Platform | undefined {
  return Object.hasOwn(PLATFORMS, key) ? PLATFORMS[key] : undefined;
}

function platformLinks(path: string, current: string): Html {
  const choices = [...Object.entries(PLATFORMS), ["other", { name: "Other issuer" }] as const];
  const links = choices.map(([key, { name }]) => ({
    href: `${path}/new?platform=${key}`,
    name,
    isCurrent: platformOf(current) === platformOf(key),
  }));
  return tabs("Platform", links);
}

type State = { name: string; value: string; error: string | undefined };

function platformField(one: PlatformField, state: State): Html {
  const { label, hint, placeholder = "", isOptional } = one;
  if ("options" in one) return ui.select({ ...state, label, hint, options: Object.entries(one.options) });
  const required = !isOptional && html`required `;
  return ui.field({
    ...state,
    label,
    hint,
    attributes: html`${required}${PLAIN} placeholder="${placeholder}"`,
  });
}

function tokenFields(state: (name: string) => State): Html {
  const required = html`required ${PLAIN}`;
  return html`${ui.field({ ...state("issuer"), label: "Issuer", isWide: true, hint: "The iss claim of the tokens. Their keys are found at this URL.", attributes: html`${required} placeholder="https://"` })}
${ui.field({ ...state("subject"), label: "Subject", isWide: true, hint: "The sub claim of the tokens. A * at the end matches anything.", attributes: required })}
${ui.field({ ...state("audience"), label: "Audience", isWide: true, hint: "The aud claim of the tokens. Workloads request their tokens for it.", attributes: required })}
${ui.textArea({ ...state("claims"), label: "Further claims (optional)", hint: "One name=value per line, which the tokens must have besides iss, sub and aud." })}`;
}
