import type { Membership } from "../../../adapters/organizations/store.ts";
import { isPaid, limitsOf, PLANS, type Plan } from "../../../resources/plans.ts";
import { retentionOf } from "../../settings/retention.ts";
import { badge, formButton, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "./pages.ts";

type Usage = { links: number; link_bytes: number };
type PlansPage = { membership: Membership; usage: Usage; isSelfService: boolean; csrf: string | undefined };

/** Renders the plans side by side, with buttons to change to the others, and what the organization uses of its plan. */
export function plansPage({ membership, usage, isSelfService, csrf }: PlansPage): Html {
  const canChange = isSelfService && isManager(membership);
  return html`${usagePanel(usage, membership.plan)}
<ul class="tiles plans">${PLANS.map((plan) => {
    const isCurrent = plan === membership.plan;
    return html`<li class="panel${isCurrent ? " current" : ""}">
<h2>${capitalized(plan)}${isCurrent ? html` ${badge("current", "good")}` : html``}</h2>
<ul class="benefits">${benefits(plan).map((line) => html`<li>${line}</li>`)}${isPaid(plan) ? html`` : html`<li class="missing">No API, MCP or webhooks</li>`}</ul>
${canChange && !isCurrent ? changeButton(membership, plan, csrf) : html``}
</li>`;
  })}</ul>
${canChange ? html`` : html`<p class="soft">${isSelfService ? "Owners and admins can change the plan." : "The operator of this service manages plans."}</p>`}`;
}

function usagePanel({ links, link_bytes }: Usage, plan: Plan): Html {
  const limits = limitsOf(plan);
  return html`<div class="panel">
<h2>Usage</h2>
<dl class="facts">
<dt>Links</dt><dd>${shown(links)} of ${shown(limits.links)}</dd>
<dt>Link data</dt><dd>${dataSize(link_bytes)} of ${dataSize(limits.link_bytes)}</dd>
</dl></div>`;
}

const shown = (count: number) => count.toLocaleString("en");

function dataSize(bytes: number): string {
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "KB"] : [bytes / 1_000_000, "MB"];
  return `${size.toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
}

function benefits(plan: Plan): string[] {
  const { requests_per_minute, links_per_bulk, webhooks, deliveries_per_day, ...limits } = limitsOf(plan);
  const always = [
    `${shown(limits.links)} short links, with ${dataSize(limits.link_bytes)} of data`,
    `${shown(limits.members)} members, with roles`,
    `Audit log, kept for ${retentionOf(plan)}`,
  ];
  if (!isPaid(plan)) return always;
  return [
    ...always,
    "REST API and MCP, with your own OAuth client",
    `${requests_per_minute.toLocaleString("en")} requests per minute`,
    `${links_per_bulk} links per bulk request`,
    `${webhooks} webhooks`,
    `${deliveries_per_day.toLocaleString("en")} webhook deliveries per day`,
  ];
}

function changeButton({ id, plan: current }: Membership, plan: Plan, csrf: string | undefined): Html {
  const action = sectionPath(id, "plan");
  if (PLANS.indexOf(plan) < PLANS.indexOf(current)) {
    return linkButton(`${action}/${plan}`, `Downgrade to ${capitalized(plan)}`, "quiet");
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
  /** How many of each stop working on a plan without API access. */
  counts: { apps: number; webhooks: number };
  csrf: string | undefined;
};

/** Renders what a downgrade stops and what it keeps, with the button that confirms it. */
export function downgradePage({ membership, to, counts, csrf }: Downgrade): Html {
  const action = sectionPath(membership.id, "plan");
  return html`<div class="panel">
<h2>What stops immediately</h2>
<ul>${(isPaid(to) ? lowerLimits(membership.plan, to) : [...stopped(counts), shorterRetention(membership.plan, to)]).map((line) => html`<li>${line}</li>`)}</ul>
<h2>What keeps working</h2>
<ul>${kept(to).map((line) => html`<li>${line}</li>`)}</ul>
<div class="actions">
${formButton({ action, csrf, text: `Downgrade to ${capitalized(to)}`, look: "danger", fields: { plan: to } })}
${linkButton(action, `Keep ${capitalized(membership.plan)}`, "quiet")}
</div></div>`;
}

function stopped({ apps, webhooks }: Downgrade["counts"]): string[] {
  return [
    "All of the organization’s API and MCP tokens stop working.",
    "Your client can’t get new tokens or ask anyone for access. Access that other organizations granted it is paused.",
    ...counted(apps, "authorized app loses access", "authorized apps lose access"),
    ...counted(webhooks, "webhook stops receiving events", "webhooks stop receiving events"),
  ];
}

function counted(count: number, one: string, many: string): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? one : many}.`];
}

function lowerLimits(from: Plan, to: Plan): string[] {
  const [before, after] = [limitsOf(from), limitsOf(to)];
  return [
    `The rate limit drops from ${shown(before.requests_per_minute)} to ${shown(after.requests_per_minute)} requests per minute.`,
    `The quota of webhook deliveries drops from ${shown(before.deliveries_per_day)} to ${shown(after.deliveries_per_day)} per day.`,
    shorterRetention(from, to),
  ];
}

function shorterRetention(from: Plan, to: Plan): string {
  return `New audit log entries are kept for ${retentionOf(to)} instead of ${retentionOf(from)}.`;
}

function kept(to: Plan): string[] {
  if (isPaid(to))
    return ["The client, its secrets and tokens, authorized apps and webhooks stay as they are."];
  return [
    "Short links keep working, and members can still manage them here.",
    "The client, its secrets and app authorizations are kept, and work again if you upgrade.",
  ];
}
