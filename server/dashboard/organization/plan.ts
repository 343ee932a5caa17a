import type { Context } from "koa";
import type { NewClient } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { isPaid, limitsOf, PLANS, type Plan } from "../../../resources/plans.ts";
import { changePlan, getPlan, selfServiceDisabled } from "../../operations/organizations.ts";
import { auditRetentionOf } from "../../settings/audit-retention.ts";
import { badge, formButton, linkButton, meter } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf, pathTo } from "../access.ts";
import { showNewSecret } from "../api-access/secrets.ts";
import type { Show } from "../forms.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { capitalized } from "./pages.ts";

export const planRoutes: RouteModule = (router, options) => {
  const { storage, settings, allow } = options;
  const { grants, links, webhooks } = storage;
  const isSelfService = settings.SELF_SERVICE_PLANS;
  const newSecrets = options.oneTimeView<NewClient>();

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const usage = await links.usage(membership.id);
    const body = plansPage(membership, usage, isSelfService);
    const intro = "Plans set your limits. This server doesn’t charge for them.";
    showPage(ctx, { title: "Plan", intro, section: "plan", error, body });
  };
  addReading(router, options, getPlan, (ctx) => show(ctx));

  router.get(`${ORGANIZATION}/plan/:plan`, allow(...MANAGERS), async (ctx) => {
    if (!isSelfService) throw selfServiceDisabled();
    const membership = membershipOf(ctx);
    const to = PLANS.find((name) => name === ctx.params.plan);
    if (!to || PLANS.indexOf(to) >= PLANS.indexOf(membership.plan)) throw notFound("plan");
    const { id } = membership;
    const [authorizedApps, hooks] = await Promise.all([
      grants.listByOrganization(id),
      webhooks.list(id, limitsOf(membership.plan).webhooks),
    ]);
    const counts = { apps: authorizedApps.length, webhooks: hooks.filter(({ enabled }) => enabled).length };
    const body = downgradePage(membership, to, counts);
    showPage(ctx, { title: `Downgrade to ${capitalized(to)}?`, section: "plan", body });
  });

  addOperation(router, options, changePlan, {
    show,
    to: (ctx: Context) => pathTo(ctx, "plan"),
    respond(ctx, { client }) {
      if (!client) return false;
      const { client_id: clientId, client_secret: clientSecret } = client;
      return showNewSecret(ctx, newSecrets, { clientId, clientSecret });
    },
  });
};

type Usage = { links: number; link_bytes: number };

function plansPage(membership: Membership, usage: Usage, isSelfService: boolean): Html {
  const canChange = isSelfService && isManager(membership);
  return html`${usagePanel(usage, membership.plan)}
<ul class="tiles plans">${PLANS.map((plan) => {
    const isCurrent = plan === membership.plan;
    return html`<li class="panel${isCurrent ? " current" : ""}">
<h2>${capitalized(plan)}${isCurrent && html` ${badge("current", "good")}`}</h2>
${plan === "premium" && html`<p class="soft">Everything in Growth, with:</p>`}<ul class="benefits">${benefits(plan).map((line) => html`<li>${line}</li>`)}${!isPaid(plan) && html`<li class="missing">No API, MCP or webhooks</li>`}</ul>
${canChange && !isCurrent && changeButton(membership, plan)}
</li>`;
  })}</ul>
${!canChange && html`<p class="soft">${isSelfService ? "Owners and admins can change the plan." : "The operator of this service manages plans."}</p>`}`;
}

function usagePanel({ links, link_bytes }: Usage, plan: Plan): Html {
  const limits = limitsOf(plan);
  return html`<div class="panel">
<h2>Usage</h2>
<dl class="facts">
<dt>Links</dt><dd>${shown(links)} of ${shown(limits.links)}${meter(links / limits.links)}</dd>
<dt>Link data</dt><dd>${dataSize(link_bytes)} of ${dataSize(limits.link_bytes)}${meter(link_bytes / limits.link_bytes)}</dd>
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
    `${shown(limits.members)} members`,
    `Audit log, kept for ${auditRetentionOf(plan)}`,
  ];
  if (!isPaid(plan)) return always;
  const larger = [
    ...always,
    `${shown(requests_per_minute)} requests per minute`,
    `${shown(deliveries_per_day)} webhook deliveries per day`,
  ];
  if (plan === "premium") return larger;
  return [
    ...larger,
    "REST API and MCP, with your own OAuth client",
    `${webhooks} webhooks, and ${links_per_bulk} links per bulk request`,
  ];
}

function changeButton({ id, plan: current }: Membership, plan: Plan): Html {
  const action = sectionPath(id, "plan");
  if (PLANS.indexOf(plan) < PLANS.indexOf(current)) {
    return linkButton(`${action}/${plan}`, `Downgrade to ${capitalized(plan)}`, "quiet");
  }
  return formButton({
    action,
    text: `Upgrade to ${capitalized(plan)}`,
    look: "primary",
    fields: { plan },
  });
}

/** How many of each stop working on a plan without API access. */
type Counts = { apps: number; webhooks: number };

function downgradePage(membership: Membership, to: Plan, counts: Counts): Html {
  const action = sectionPath(membership.id, "plan");
  return html`<div class="panel">
<h2>What stops immediately</h2>
<ul>${(isPaid(to) ? lowerLimits(membership.plan, to) : [...stopped(counts), shorterRetention(membership.plan, to)]).map((line) => html`<li>${line}</li>`)}</ul>
<h2>What keeps working</h2>
<ul>${kept(to).map((line) => html`<li>${line}</li>`)}</ul>
<div class="actions">
${formButton({ action, text: `Downgrade to ${capitalized(to)}`, look: "danger", fields: { plan: to } })}
${linkButton(action, `Keep ${capitalized(membership.plan)}`, "quiet")}
</div></div>`;
}

function stopped({ apps, webhooks }: Counts): string[] {
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
  return `New audit log entries are kept for ${auditRetentionOf(to)} instead of ${auditRetentionOf(from)}.`;
}

function kept(to: Plan): string[] {
  if (isPaid(to))
    return ["The client, its secrets and tokens, authorized apps and webhooks stay as they are."];
  return [
    "Short links keep working, and members can still manage them here.",
    "The client, its secrets and app authorizations are kept, and work again if you upgrade.",
  ];
}
