import type { Context } from "koa";
import type { Tokens } from "marked";
import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { pageReader } from "../../docs/guides.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import {
  createTrustRule,
  deleteTrustRule,
  listTrustRules,
  parseClaims,
} from "../../operations/trust-rules.ts";
import { badge, breakable, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { PLATFORMS } from "../../workload-identity/platforms.ts";
import { composeTrustRule } from "../../workload-identity/trust-rules.ts";
import { membershipOf, pathTo } from "../access.ts";
import { formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { snippetFigures } from "./quick-start.ts";
import type { Snippet } from "./snippets.ts";
import { tabContent } from "./tabs.ts";
import { platformOf, trustRuleForm } from "./trust-rule-form.ts";

const INTRO = "Let GitHub Actions, GitLab and Kubernetes call the API without a secret.";

export const workloadIdentityRoutes: RouteModule = (router, options) => {
  const { clients, trustRules } = options.storage;
  const to = (ctx: Context) => `${pathTo(ctx, "overview")}/workload-identity`;

  addReading(router, options, listTrustRules, async (ctx) => {
    const { id } = membershipOf(ctx);
    const client = await clients.findByOrganization(id);
    const snippets = client ? workloadQuickStarts(options.urls, client.clientId) : [];
    const body = workloadIdentityPage(to(ctx), await trustRules.list(id), snippets);
    showPage(ctx, tabContent(ctx, "workload-identity", client, body));
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
      const body = trustRuleForm({ path: to(ctx), platform, values, errors });
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
export function workloadQuickStarts(
  { base, api }: Pick<PublicUrls, "base" | "api">,
  clientId: string,
): Snippet[] {
  return Object.entries(PLATFORMS).map(([key, { name: title, note }]) => {
    const { text } = readDocument(`${title} without a secret`).find(
      ({ type }) => type === "code",
    ) as Tokens.Code;
    const code = text
      .replaceAll("https://links.example/v1", () => api)
      .replaceAll("https://links.example", () => base)
      .replaceAll("lgc_…", () => clientId);
    return { name: key, title, note, code };
  });
}

function workloadIdentityPage(path: string, rules: TrustRule[], snippets: Snippet[]): Html {
  const add = linkButton(`${path}/new`, "Add trust rule");
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
${formButton({ action: `${path}/${id}/delete`, text: "Delete", about, look: "danger" })}</div>
<dl class="facts">${requiredClaims(rule)}
<dt>Permissions</dt><dd><span class="tags">${scopes.map((scope) => badge(scope))}</span></dd>
<dt>Added</dt><dd>${time(createdAt)} by ${createdBy}</dd>
<dt>Last used</dt><dd>${time(lastUsedAt)}</dd></dl>
</section>
`;
}

function requiredClaims({ issuer, subject, audience, claims }: TrustRule): Html {
  const required = { Issuer: issuer, Subject: subject, Audience: audience, ...claims };
  return html`${Object.entries(required).map(
    ([name, value]) => html`<dt>${name}</dt><dd><code>${breakable(value)}</code></dd>`,
  )}`;
}
