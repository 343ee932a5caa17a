import type { Router } from "@koa/router";
import type { Context } from "koa";
import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { type Input, prefersHtml, textFieldOf } from "../../http/request-body.ts";
import { badge, breakable, formButton, linkButton, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { workloadQuickStarts } from "../../workload-identity/quick-starts.ts";
import { ruleContextOf, trustRuleValidation } from "../../workload-identity/schema.ts";
import { showTrustRule } from "../../workload-identity/view.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import {
  formFieldsOf,
  isForm,
  redisplayForm,
  respondToChange,
  type Show,
  showPage,
  splitFieldErrors,
} from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { clientOf } from "./client.ts";
import { noClientPage } from "./page.ts";
import { snippetFigures } from "./quick-start-page.ts";
import type { Snippet } from "./snippets.ts";
import { platformOf, type TrustRuleValues, trustRuleForm } from "./trust-rule-form.ts";

type WorkloadIdentityPage = {
  path: string;
  rules: TrustRule[];
  snippets: Snippet[];
  csrf: string | undefined;
};

const PATH = `${ORGANIZATION}/workload-identity`;

type Options = Parameters<RouteModule>[1];

/** Adds the routes that list, add and delete trust rules. */
export const workloadIdentityRoutes: RouteModule = (router, options) => {
  const { storage, allow } = options;
  const managers = allow(...MANAGERS);

  router.get(PATH, managers, async (ctx) => {
    if (prefersHtml(ctx)) return showRules(ctx, options);
    ctx.body = { data: (await storage.trustRules.list(membershipOf(ctx).id)).map(showTrustRule) };
  });

  addCreationRoutes(router, options);

  const remove = async (ctx: Context) => {
    requireRecentSignIn(ctx, workloadIdentityPath(ctx));
    const { id } = membershipOf(ctx);
    const { actor } = signedInUserOf(ctx);
    if (!(await storage.trustRules.remove(id, ctx.params.rule_id as string, actor)))
      throw notFound("trust rule");
    respondToChange(ctx, { to: workloadIdentityPath(ctx), done: "trust-rule-deleted" });
  };
  router.delete(`${PATH}/:rule_id`, managers, remove);
  router.post(`${PATH}/:rule_id/delete`, managers, remove);
};

function workloadIdentityPath(ctx: Context): string {
  return `${sectionPath(membershipOf(ctx).id, "overview")}/workload-identity`;
}

async function showRules(ctx: Context, { storage, urls }: Options): Promise<void> {
  const { id } = membershipOf(ctx);
  const page = { title: "Workload identity", section: "client" as const };
  const client = await storage.clients.findByOrganization(id);
  if (!client) return showPage(ctx, page, noClientPage(id));
  const { body, actions } = workloadIdentityPage({
    path: workloadIdentityPath(ctx),
    rules: await storage.trustRules.list(id),
    snippets: workloadQuickStarts(urls, client.clientId),
    csrf: signedInUserOf(ctx).csrf,
  });
  const intro =
    "CI jobs and clusters get access with tokens of their platform instead of your client secret.";
  showPage(ctx, { ...page, intro, actions }, body);
}

function addCreationRoutes(router: Router, { storage, settings, urls, allow }: Options): void {
  const { clients, trustRules } = storage;
  const managers = allow(...MANAGERS);
  const validateTrustRule = trustRuleValidation(ruleContextOf(settings, urls));

  const showForm: Show = async (ctx, _error, problem) => {
    requireRecentSignIn(ctx);
    await clientOf(clients, membershipOf(ctx).id);
    const { error, errors } = fieldErrorsOf(problem);
    const submitted = problem && (await formFieldsOf(ctx));
    const platform = textFieldOf(submitted ? submitted.platform : ctx.query.platform) || "github";
    const values = submitted ? toValues(submitted) : defaultsOf(platform, urls.base);
    const path = workloadIdentityPath(ctx);
    const body = trustRuleForm({ path, platform, values, errors, csrf: signedInUserOf(ctx).csrf });
    showPage(ctx, { title: "Add trust rule", section: "client", error }, body);
  };
  router.get(`${PATH}/new`, managers, (ctx) => showForm(ctx));

  router.post(PATH, managers, redisplayForm(showForm), async (ctx) => {
    const { id } = membershipOf(ctx);
    requireRecentSignIn(ctx, `${workloadIdentityPath(ctx)}/new`);
    await clientOf(clients, id);
    const rule = validateTrustRule(await readInput(ctx));
    const created = await trustRules.create(id, rule, signedInUserOf(ctx).actor);
    if (created === "missing") throw notFound("organization");
    if (created === "limit") throw limitReached();
    const body = showTrustRule(created);
    respondToChange(ctx, { to: workloadIdentityPath(ctx), done: "trust-rule-added", status: 201, body });
  });
}

function limitReached(): Problem {
  const detail = `An organization can have at most ${MAX_TRUST_RULES} trust rules. Delete one to add another.`;
  return new Problem(409, "trust_rule_limit", detail);
}

function defaultsOf(platform: string, audience: string): TrustRuleValues {
  const { issuer = "" } = platformOf(platform);
  return { name: "", issuer, subject: "", audience, claims: "", scopes: ["links:write"] };
}

/** Splits a problem by field; the form has one field for all claims, so its error says which claim is meant. */
function fieldErrorsOf(problem: Problem | undefined) {
  const { error, errors } = splitFieldErrors(problem);
  const claim = problem?.errors?.find(({ field }) => field.startsWith("claims."));
  const claims = claim && `${claim.field.slice("claims.".length)} ${claim.message}.`;
  return { error, errors: { ...errors, ...(claims && { claims }) } };
}

async function readInput(ctx: Context): Promise<Input> {
  const fields = await formFieldsOf(ctx);
  if (!isForm(ctx)) return fields;
  const { platform: _, claims, scopes, ...others } = fields;
  return { ...others, claims: parseClaims(textFieldOf(claims)), scopes: [scopes ?? []].flat() };
}

function toValues({ name, issuer, subject, audience, claims, scopes }: Input): TrustRuleValues {
  return {
    name: textFieldOf(name),
    issuer: textFieldOf(issuer),
    subject: textFieldOf(subject),
    audience: textFieldOf(audience),
    claims: textFieldOf(claims),
    scopes: [scopes ?? []].flat().map(textFieldOf),
  };
}

/** Parses lines of `name=value`; a value may contain further `=`. */
function parseClaims(text: string): Record<string, string> {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}

/** Renders the trust rules of an organization, and how workloads get tokens with them. */
function workloadIdentityPage({ path, rules, snippets, csrf }: WorkloadIdentityPage): {
  body: Html;
  actions?: Html;
} {
  const add = linkButton(`${path}/new`, "Add trust rule");
  const quickStarts = html`<section class="group"><div class="title"><div><h2>Quick starts</h2>
<p class="intro">Each one gets an access token that is valid for 15 minutes, and creates a link with it.</p></div></div>
${snippetFigures(snippets, (title) => html`<h3>${title}</h3>`)}</section>`;
  if (rules.length === 0) {
    const text = "Add a rule to accept the tokens that your CI or cluster gives its jobs.";
    return { body: html`${emptyState("No trust rules yet", text, add)}${quickStarts}` };
  }
  const isFull = rules.length >= MAX_TRUST_RULES;
  const count = `${rules.length} of ${MAX_TRUST_RULES} trust rules.${isFull ? " Delete one to add another." : ""}`;
  const body = html`${rules.map((rule) => rulePanel(rule, path, csrf))}<p class="soft">${count}</p>${quickStarts}`;
  return { body, ...(!isFull && { actions: add }) };
}

function rulePanel(rule: TrustRule, path: string, csrf: string | undefined): Html {
  const { id, name, scopes, createdBy, createdAt, lastUsedAt } = rule;
  const about = `trust rule ${name}`;
  return html`<section class="panel"><div class="title"><h2>${name}</h2>
${formButton({ action: `${path}/${id}/delete`, csrf, text: "Delete", about, look: "danger" })}</div>
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
