import type { Context } from "koa";
import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { type Input, prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { badge, breakable, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { workloadQuickStarts } from "../../workload-identity/quick-starts.ts";
import { ruleContextOf, showTrustRule, trustRuleValidation } from "../../workload-identity/trust-rules.ts";
import { actorOf, MANAGERS, membershipOf, pathTo } from "../access.ts";
import { formFieldsOf, isForm, respondToChange, sendJson, showPage, splitFieldErrors } from "../responses.ts";
import { addChange, addForm, ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { snippetFigures } from "./quick-start.ts";
import type { Snippet } from "./snippets.ts";
import { tabContent } from "./tabs.ts";
import { platformOf, trustRuleForm } from "./trust-rule-form.ts";

const PATH = `${ORGANIZATION}/workload-identity`;
const LIMIT_REACHED = `An organization can have at most ${MAX_TRUST_RULES} trust rules. Delete one to add another.`;
const INTRO = "Let GitHub Actions, GitLab and Kubernetes call the API without a secret.";

export const workloadIdentityRoutes: RouteModule = (router, { storage, settings, urls, allow }) => {
  const { clients, trustRules } = storage;
  const managers = allow(...MANAGERS);
  const validateTrustRule = trustRuleValidation(ruleContextOf(settings, urls));
  const readForm = async (ctx: Context) => {
    const { platform, ...fields } = await formFieldsOf(ctx);
    const input = { ...fields, scopes: [fields.scopes ?? []].flat() };
    const composed = platformOf(textFieldOf(platform));
    if (composed) return validateTrustRule(input, composed);
    return validateTrustRule({ ...input, claims: parseClaims(textFieldOf(fields.claims)) });
  };
  const pathOf = (ctx: Context) => `${pathTo(ctx, "overview")}/workload-identity`;

  router.get(PATH, managers, async (ctx) => {
    const { id } = membershipOf(ctx);
    if (!prefersHtml(ctx)) return sendJson(ctx, { data: (await trustRules.list(id)).map(showTrustRule) });
    const client = await clients.findByOrganization(id);
    const snippets = client ? workloadQuickStarts(urls, client.clientId) : [];
    const body = workloadIdentityPage(pathOf(ctx), await trustRules.list(id), snippets);
    showPage(ctx, tabContent(ctx, "workload-identity", client, body));
  });

  addForm(router, {
    path: `${PATH}/new`,
    action: PATH,
    access: managers,
    section: "client",
    isSensitive: true,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = fieldErrorsOf(problem);
      const submitted = problem && (await formFieldsOf(ctx));
      const platform = textFieldOf(submitted ? submitted.platform : ctx.query.platform) || "github";
      const values = submitted ?? defaultsOf(platform, urls.base);
      const body = trustRuleForm({ path: pathOf(ctx), platform, values, errors });
      return { title: "Add trust rule", ...error, body };
    },
    async change(ctx) {
      const { organizationId, actor } = actorOf(ctx);
      await clientOf(ctx, clients);
      const rule = isForm(ctx) ? await readForm(ctx) : validateTrustRule(await formFieldsOf(ctx));
      const created = await trustRules.create(organizationId, rule, actor);
      if (created === "missing") throw notFound("organization");
      if (created === "limit") throw new Problem(409, "trust_rule_limit", LIMIT_REACHED);
      const body = showTrustRule(created);
      respondToChange(ctx, { to: pathOf(ctx), done: "trust-rule-added", status: 201, body });
    },
  });

  addChange(router, ["delete", `${PATH}/:rule_id`], { access: [managers] }, async (ctx) => {
    requireRecentSignIn(ctx, pathOf(ctx));
    const { organizationId, actor } = actorOf(ctx);
    if (!(await trustRules.remove(organizationId, ctx.params.rule_id, actor))) throw notFound("trust rule");
    respondToChange(ctx, { to: pathOf(ctx), done: "trust-rule-deleted" });
  });
};

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

/** A value may contain further `=`. */
function parseClaims(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
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
