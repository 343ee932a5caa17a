import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { isPaid, limitsOf, PLANS, type Plan } from "../../../resources/plans.ts";
import { changePlan, getPlan } from "../../operations/organizations.ts";
import { refusal } from "../../operations/problem-codes.ts";
import { auditRetentionOf } from "../../settings/audit-retention.ts";
import { badge, formButton, linkButton, meter } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "../../ui/text.ts";
import { mayRun, membershipOf, pathTo, rolesOf } from "../access.ts";
import { type NewSecret, redirectToSecret } from "../api-access/secrets.ts";
import type { Show } from "../forms.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

export const planRoutes: RouteModule = (router, options) => {
  const { storage, settings, allow } = options;
  const { grants, links, webhooks } = storage;
  const isSelfService = settings.SELF_SERVICE_PLANS;
  const newSecrets = options.oneTimeView<NewSecret>();

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const usage = usagePanel(await links.usage(membership.id), membership.plan);
    const body = html`${usage}
${plansList(membership, isSelfService)}`;
    const intro = "Plans set your limits. This server doesn’t charge for them.";
    showPage(ctx, { title: "Plan", intro, section: "plan", error, body });
  };
  addReading(router, options, getPlan, (ctx) => show(ctx));

  router.get(`${ORGANIZATION}/plan/:plan`, allow(...rolesOf(changePlan)), async (ctx) => {
    if (!isSelfService) throw refusal("self_service_disabled");
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
    respond: (ctx, { client }) => (client ? redirectToSecret(ctx, newSecrets, client) : false),
  });
};

function plansList(membership: Membership, isSelfService: boolean): Html {
  const canChange = isSelfService && mayRun(membership, changePlan);
  return html`<ul class="tiles plans">${PLANS.map((plan) => {
    const isCurrent = plan === membership.plan;
    return html`<li class="panel${isCurrent ? " current" : ""}">
<h2>${capitalized(plan)}${isCurrent && html` ${badge("current", "good")}`}</h2>
${plan === "premium" && html`<p class="soft">Everything in Growth, with:</p>`}<ul class="benefits">${benefits(plan).map((line) => html`<li>${line}</li>`)}${!isPaid(plan) && html`<li class="missing">No API, MCP, webhooks or domains of your own</li>`}</ul>
${canChange && !isCurrent && changeButton(membership, plan)}
</li>`;
  })}</ul>
${!canChange && html`<p class="soft">${isSelfService ? "Owners and admins can change the plan." : refusal("self_service_disabled").message}</p>`}`;
}

function usagePanel({ links, link_bytes }: { links: number; link_bytes: number }, plan: Plan): Html {
  const limits = limitsOf(plan);
  return html`<div class="panel">
<h2>Usage</h2>
<dl class="facts">
<dt>Links</dt><dd>${formatCount(links)} of ${formatCount(limits.links)}${meter(links / limits.links)}</dd>
<dt>Link data</dt><dd>${dataSize(link_bytes)} of ${dataSize(limits.link_bytes)}${meter(link_bytes / limits.link_bytes)}</dd>
</dl></div>`;
}

const formatCount = (count: number) => count.toLocaleString("en");

export function dataSize(bytes: number): string {
  const units = { GB: 1_000_000_000, MB: 1_000_000 };
  const [unit, size] = Object.entries(units).find(([, size]) => bytes >= size) ?? ["KB", 1000];
  return `${(bytes / size).toLocaleString("en", { maximumFractionDigits: 1 })} ${unit}`;
}

function benefits(plan: Plan): string[] {
  const { requests_per_minute, links_per_bulk, webhooks, deliveries_per_day, ...limits } = limitsOf(plan);
  const always = [
    `${formatCount(limits.links)} short links, with ${dataSize(limits.link_bytes)} of data`,
    `${formatCount(limits.members)} members`,
    `Audit log, kept for ${auditRetentionOf(plan)}`,
  ];
  if (!isPaid(plan)) return always;
  const larger = [
    ...always,
    `${formatCount(requests_per_minute)} requests per minute`,
    `${formatCount(deliveries_per_day)} webhook deliveries per day`,
    `${formatCount(limits.domains)} domains of your own`,
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
  if (PLANS.indexOf(plan) < PLANS.indexOf(current))
    return linkButton(`${action}/${plan}`, `Downgrade to ${capitalized(plan)}`, "quiet");
  return formButton({ action, text: `Upgrade to ${capitalized(plan)}`, look: "primary", fields: { plan } });
}

/** `counts`: how many of each stop working on a plan without API access. */
function downgradePage(
  { id, plan: from }: Membership,
  to: Plan,
  counts: { apps: number; webhooks: number },
): Html {
  const action = sectionPath(id, "plan");
  const [before, after] = [limitsOf(from), limitsOf(to)];
  const stopped = isPaid(to)
    ? [
        `The rate limit drops from ${formatCount(before.requests_per_minute)} to ${formatCount(after.requests_per_minute)} requests per minute.`,
        `The quota of webhook deliveries drops from ${formatCount(before.deliveries_per_day)} to ${formatCount(after.deliveries_per_day)} per day.`,
      ]
    : [
        "All of the organization’s API and MCP tokens stop working.",
        "Your client can’t get new tokens or ask anyone for access. Access that other organizations granted it is paused.",
        ...counted(counts.apps, "authorized app loses access", "authorized apps lose access"),
        ...counted(counts.webhooks, "webhook stops receiving events", "webhooks stop receiving events"),
      ];
  const retention = `New audit log entries are kept for ${auditRetentionOf(to)} instead of ${auditRetentionOf(from)}.`;
  const kept = isPaid(to)
    ? ["The client, its secrets and tokens, authorized apps and webhooks stay as they are."]
    : [
        "Short links keep working, also on your own domains, and members can still manage them here.",
        "The client, its secrets and app authorizations are kept, and work again if you upgrade.",
      ];
  return html`<div class="panel">
<h2>What stops immediately</h2>
<ul>${[...stopped, retention].map((line) => html`<li>${line}</li>`)}</ul>
<h2>What keeps working</h2>
<ul>${kept.map((line) => html`<li>${line}</li>`)}</ul>
<div class="actions">
${formButton({ action, text: `Downgrade to ${capitalized(to)}`, look: "danger", fields: { plan: to } })}
${linkButton(action, `Keep ${capitalized(from)}`, "quiet")}
</div></div>`;
}

function counted(count: number, one: string, many: string): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? one : many}.`];
}
