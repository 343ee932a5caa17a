import { MAX_TRUST_RULES, type TrustRule } from "../../../adapters/organizations/trust-rules.ts";
import { badge, breakable, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, emptyState, table } from "../../ui/table.ts";
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
  const quickStarts = html`<section><h2>Quick starts</h2>
<p class="soft">Each one gets a token that is valid for 15 minutes, and creates a link with it.</p>
${snippetFigures(snippets, (title) => html`<h3>${title}</h3>`)}</section>`;
  if (rules.length === 0) {
    const text = "Add a rule to accept the tokens that your CI or cluster gives its jobs.";
    return { body: html`${emptyState("No trust rules yet", text, add)}${quickStarts}` };
  }
  const isFull = rules.length >= MAX_TRUST_RULES;
  const count = `${rules.length} of ${MAX_TRUST_RULES} trust rules.${isFull ? " Delete one to add another." : ""}`;
  const body = html`${table("Trust rules", columnsOf(path, csrf), rules)}<p class="soft">${count}</p>${quickStarts}`;
  return { body, ...(!isFull && { actions: add }) };
}

function columnsOf(path: string, csrf: string | undefined): Column<TrustRule>[] {
  return [
    { head: "Name", cell: ({ name }) => html`<strong>${name}</strong>` },
    { head: "Accepted tokens", cell: requiredClaims },
    {
      head: "Permissions",
      cell: ({ scopes }) => html`<span class="tags">${scopes.map((scope) => badge(scope))}</span>`,
    },
    {
      head: "Added",
      cell: ({ createdBy, createdAt }) => html`${time(createdAt)} <span class="soft">by ${createdBy}</span>`,
    },
    { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
    {
      head: "Actions",
      cell: ({ id, name }) =>
        formButton({
          action: `${path}/${id}/delete`,
          csrf,
          text: "Delete",
          about: `trust rule ${name}`,
          look: "danger",
        }),
    },
  ];
}

function requiredClaims({ issuer, subject, audience, claims }: TrustRule): Html {
  const required = { iss: issuer, sub: subject, aud: audience, ...claims };
  return html`<dl class="facts">${Object.entries(required).map(
    ([name, value]) => html`<dt>${name}</dt><dd><code>${breakable(value)}</code></dd>`,
  )}</dl>`;
}
