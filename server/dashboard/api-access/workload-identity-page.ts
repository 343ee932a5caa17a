import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { badge, breakable, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { snippetFigures } from "./quick-start-page.ts";
import type { Snippet } from "./snippets.ts";

type WorkloadIdentityPage = {
  path: string;
  rules: TrustRule[];
  snippets: Snippet[];
  csrf: string | undefined;
};

/** Renders the trust rules of an organization, and how workloads get tokens with them. */
export function workloadIdentityPage({ path, rules, snippets, csrf }: WorkloadIdentityPage): {
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
