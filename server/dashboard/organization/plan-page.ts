import type { Membership } from "../../../adapters/organizations.ts";
import { isPaid, limitsOf, PLANS, type Plan } from "../../../resources/plans.ts";
import { type Html, html } from "../html.ts";
import { badge, formButton, linkButton } from "./controls.ts";
import { isManager, sectionPath } from "./layout.ts";
import { capitalized } from "./organizations.ts";

type PlansPage = { membership: Membership; isSelfService: boolean; csrf: string | undefined };

/** The plans side by side, with the way from the current one to the others. */
export function plansPage({ membership, isSelfService, csrf }: PlansPage): Html {
  const mayChange = isSelfService && isManager(membership);
  return html`<ul class="tiles plans">${PLANS.map((plan) => {
    const isCurrent = plan === membership.plan;
    return html`<li class="panel${isCurrent ? " current" : ""}">
<h2>${capitalized(plan)}${isCurrent ? html` ${badge("current", "good")}` : html``}</h2>
<ul class="benefits">${benefits(plan).map((line) => html`<li>${line}</li>`)}${isPaid(plan) ? html`` : html`<li class="missing">No API, no MCP, no webhooks</li>`}</ul>
${mayChange && !isCurrent ? way(membership, plan, csrf) : html``}
</li>`;
  })}</ul>
${mayChange ? html`` : html`<p class="soft">${isSelfService ? "Owners and admins change the plan." : "Plans are changed by whoever runs this service."}</p>`}`;
}

function benefits(plan: Plan): string[] {
  const { requests_per_minute, links_per_bulk, webhooks } = limitsOf(plan);
  const always = ["Links and redirects, managed here", "Members, roles and an audit log"];
  if (!isPaid(plan)) return always;
  return [
    ...always,
    "REST API and MCP, with an OAuth client of your own",
    `${requests_per_minute.toLocaleString("en")} requests a minute`,
    `${links_per_bulk} links in one bulk call`,
    `${webhooks} webhooks`,
  ];
}

function way({ id, plan: current }: Membership, plan: Plan, csrf: string | undefined): Html {
  const action = sectionPath(id, "plan");
  if (PLANS.indexOf(plan) < PLANS.indexOf(current)) {
    return linkButton(`${action}/${plan}`, `Change to ${capitalized(plan)}`, "quiet");
  }
  return formButton({
    action,
    csrf,
    text: `Upgrade to ${capitalized(plan)}`,
    look: "primary",
    fields: { plan },
  });
}

type Downgrade = {
  membership: Membership;
  to: Plan;
  /** What there is that would stop. */
  counts: { apps: number; webhooks: number };
  csrf: string | undefined;
};

/** Says exactly what stops before a plan is left. */
export function downgradePage({ membership, to, counts, csrf }: Downgrade): Html {
  const action = sectionPath(membership.id, "plan");
  return html`<div class="panel">
<h2>At once</h2>
<ul>${(isPaid(to) ? lowerLimits(membership.plan, to) : stops(counts)).map((line) => html`<li>${line}</li>`)}</ul>
<h2>As before</h2>
<ul>${stays(to).map((line) => html`<li>${line}</li>`)}</ul>
<div class="actions">
${formButton({ action, csrf, text: `Change to ${capitalized(to)}`, look: "danger", fields: { plan: to } })}
${linkButton(action, "Stay", "quiet")}
</div></div>`;
}

function stops({ apps, webhooks }: Downgrade["counts"]): string[] {
  return [
    "The REST API and MCP refuse every token of the organization, whoever holds it.",
    "The client gets no new tokens and can begin no authorization. What people elsewhere allowed it rests.",
    `What apps were allowed here rests: ${counted(apps, "app stops", "apps stop")} working.`,
    `Webhooks are told nothing: ${counted(webhooks, "webhook falls", "webhooks fall")} silent.`,
  ];
}

function counted(count: number, one: string, many: string): string {
  return `${count === 0 ? "no" : count} ${count === 1 ? one : many}`;
}

function lowerLimits(from: Plan, to: Plan): string[] {
  const [before, after] = [limitsOf(from), limitsOf(to)];
  const calls = (limit: number) => limit.toLocaleString("en");
  return [
    `The API and MCP take ${calls(after.requests_per_minute)} requests a minute instead of ${calls(before.requests_per_minute)}.`,
  ];
}

function stays(to: Plan): string[] {
  if (isPaid(to)) return ["The client, its secrets, tokens, apps and webhooks stay as they are."];
  return [
    "Short links go on redirecting, and members manage them here.",
    "The client, its secrets and what apps were allowed are kept: upgrading again brings the same ones back.",
  ];
}
