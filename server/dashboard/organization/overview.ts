import type { AuditPage } from "../../../adapters/events/audit-log.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { isPaid, limitsOf } from "../../../resources/plans.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { CHANGE_TYPES } from "../../operations/audit-query.ts";
import { actorNameOf } from "../../operations/audit-sentences.ts";
import { createOrganization, getOrganization, listOrganizations } from "../../operations/organizations.ts";
import * as ui from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { capitalized } from "../../ui/text.ts";
import { actorOf, membershipOf, signedInUserOf } from "../access.ts";
import { formFieldsOf, splitFieldErrors } from "../forms.ts";
import { clicksPanel, topLinksPanel } from "../links/analytics.ts";
import { quickForm } from "../links/list.ts";
import { addOperationPage, addReading } from "../operation-routes.ts";
import { respondToChange, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { statusOf, type WebhookStatus } from "../webhooks/context.ts";
import { continuesAction, lineOf } from "./audit.ts";

/** Has the ID of the organization that the user viewed last. */
const LAST_VIEWED_COOKIE = "organization";
const CHECKLIST_COOKIE = "checklist";
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
const TOP_LINKS = 5;
const ACTIVITIES = { limit: 6, maxBytes: 64 * 1024, before: undefined, continues: continuesAction };

export const overviewRoutes: RouteModule = (router, options) => {
  const { storage, services, urls, allow } = options;

  /** Shows what happened lately, with the plan and what needs attention at the side. */
  addReading(router, options, getOrganization, async (ctx) => {
    const membership = membershipOf(ctx);
    const { id, name, plan } = membership;
    const { usage } = await services.showOrganization(id);
    ctx.cookies.set(LAST_VIEWED_COOKIE, id, { path: "/dashboard", sameSite: "lax", overwrite: true });
    const caller = actorOf(ctx);
    const isReader = isManager(membership);
    const [report, apps, members, activity, webhooks] = await Promise.all([
      services.links.report(caller, undefined, {}, TOP_LINKS),
      storage.grants.listByOrganization(id),
      storage.members.list(id),
      isReader ? storage.audit.page(id, { types: CHANGE_TYPES }, ACTIVITIES) : undefined,
      isReader && isPaid(plan) ? services.webhooks.list(caller, { limit: 100 }) : undefined,
    ]);
    const { found: clicks, previous, topLinks } = report;
    const counts = { links: usage.links, apps: apps.length, members: members.length };
    const isDismissed = ctx.cookies.get(CHECKLIST_COOKIE) !== undefined;
    const body = html`<div class="beside"><div>
${!isDismissed && checklist(membership, counts)}
${
  usage.links + clicks.clicks > 0 &&
  clicksPanel(clicks, {
    title: "Clicks in the last 30 days",
    empty: "No clicks in the last 30 days.",
    more: ui.linkButton(sectionPath(id, "analytics"), "View analytics", "quiet"),
    previous,
  })
}
${topLinks.length > 0 && topLinksPanel(topLinks, { total: clicks.clicks, path: sectionPath(id, "links"), shortUrl: urls.short })}
${usage.links > 0 && activity && activity.entries.length > 0 && activityPanel(id, activity)}
</div>
<aside aria-label="Organization">
${planPanel(membership, counts)}
${webhooks && webhooksPanel(membership, webhooks.webhooks)}
</aside></div>`;
    const tile = ui.initial(name);
    showPage(ctx, { title: "Overview", heading: name, tile, section: "overview", body });
  });

  router.post(`${ORGANIZATION}/checklist`, allow(), (ctx) => {
    const { id } = membershipOf(ctx);
    const path = sectionPath(id, "overview");
    const options = { path, sameSite: "lax", maxAge: YEAR_MS, overwrite: true } as const;
    ctx.cookies.set(CHECKLIST_COOKIE, "dismissed", options);
    respondToChange(ctx, { to: path });
  });
};

type Counts = { links: number; apps: number; members: number };
/** Renders the steps that aren't done yet, and those that are, until all of them are. */
function checklist(membership: Membership, counts: Counts): Html {
  const { id, plan } = membership;
  const manages = isManager(membership);
  const steps: ({ isDone: boolean; text: string; href: string } | false)[] = [
    { isDone: counts.links > 0, text: "Create your first link", href: `${sectionPath(id, "links")}/new` },
    isPaid(plan)
      ? { isDone: counts.apps > 0, text: "Connect an AI client or app", href: sectionPath(id, "connect") }
      : manages && { isDone: false, text: "Upgrade to use the API", href: sectionPath(id, "plan") },
    manages && { isDone: counts.members > 1, text: "Invite a colleague", href: sectionPath(id, "members") },
  ];
  const shown = steps.filter((step) => step !== false);
  if (shown.every(({ isDone }) => isDone)) return html``;
  return html`<section class="panel"><div class="title"><h2>Get started</h2>
<form method="post" action="${sectionPath(id, "overview")}/checklist" class="inline">${ui.CSRF_FIELD}<button type="submit" class="glyph">${ui.icon("x")}<span class="visually-hidden">Dismiss</span></button></form></div>
${counts.links === 0 && quickForm(sectionPath(id, "links"))}
<ul class="checklist">${shown.map(
    ({ isDone, text, href }) =>
      html`<li>${isDone ? html`${ui.icon("circle-check")}<span class="soft">${text}<span class="visually-hidden"> (done)</span></span>` : html`${ui.icon("circle")}<a href="${href}">${text}</a>`}</li>
`,
  )}</ul></section>`;
}

function planPanel({ id, plan }: Membership, counts: Counts): Html {
  const limits = limitsOf(plan);
  const row = (name: string, href: string, used: number, limit?: number) =>
    html`<li><a href="${href}">${name}</a><span>${used.toLocaleString("en")}${
      limit !== undefined && html`<span class="soft"> of ${limit.toLocaleString("en")}</span>`
    }</span>${limit !== undefined && ui.meter(used / limit)}</li>
`;
  return html`<section class="panel"><div class="title"><h2>${capitalized(plan)} plan</h2>${ui.linkButton(sectionPath(id, "plan"), "Plans", "quiet")}</div>
<ul class="usage">
${row("Links", sectionPath(id, "links"), counts.links, limits.links)}${row("Members", sectionPath(id, "members"), counts.members, limits.members)}${row("Apps", sectionPath(id, "apps"), counts.apps)}</ul></section>`;
}

function webhooksPanel({ id, plan }: Membership, webhooks: Webhook[]): Html {
  const href = sectionPath(id, "webhooks");
  const countOf = (status: WebhookStatus) => webhooks.filter((one) => statusOf(one, plan) === status).length;
  const [failing, unverified, active] = [countOf("failing"), countOf("unverified"), countOf("active")];
  const state = html`${failing > 0 && ui.badge(`${failing} failing`, "bad")}${unverified > 0 && ui.badge(`${unverified} unverified`, "warn")}${failing + unverified === 0 && active > 0 && ui.badge("Healthy", "good")}`;
  return html`<section class="panel"><div class="title"><h2>Webhooks</h2><span class="tags">${state}</span></div>
<p class="soft">${webhooks.length === 0 ? "Receive events at your own endpoint." : `${webhooks.length} of ${limitsOf(plan).webhooks}`}</p>
${ui.linkButton(webhooks.length === 0 ? `${href}/new` : href, webhooks.length === 0 ? "Create webhook" : "View webhooks", "quiet")}</section>`;
}

function activityPanel(organizationId: string, { entries, lines }: AuditPage): Html {
  const items = entries.map(
    (entry) =>
      html`<li><span><bdi>${actorNameOf(entry)}</bdi> ${lineOf(entry, lines)}</span><span class="soft">${ui.time(entry.at)}</span></li>
`,
  );
  return html`<section class="panel"><div class="title"><h2>Recent activity</h2>${ui.linkButton(sectionPath(organizationId, "audit"), "Audit log", "quiet")}</div>
<ul class="activity">${items}</ul></section>`;
}

const NEW = "/dashboard/organizations/new";

export const organizationRoutes: RouteModule = (router, options) => {
  const { organizations } = options.storage;

  addReading(router, options, listOrganizations, async (ctx) => {
    const memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    const lastViewed = memberships.find(({ id }) => id === ctx.cookies.get(LAST_VIEWED_COOKIE));
    const home = memberships.length === 1 ? memberships[0] : lastViewed;
    if (home) return void ctx.redirect(sectionPath(home.id, "overview"));
    if (memberships.length === 0) return showPage(ctx, { title: "Welcome", body: firstOrganization() });
    ctx.state.memberships = memberships;
    const tiles = memberships.map(({ id, name, plan, role }) => {
      const link = html`<a href="${sectionPath(id, "overview")}">${name}</a>`;
      return html`<li class="panel"><h2>${ui.named(ui.initial(name), link)}</h2>
<p class="soft">${capitalized(plan)} plan · ${capitalized(role)}</p></li>`;
    });
    const body = html`<ul class="tiles">${tiles}</ul>
<p>${ui.linkButton(NEW, "New organization", "quiet")}</p>`;
    showPage(ctx, { title: "Your organizations", body });
  });

  addOperationPage(router, options, createOrganization, {
    path: NEW,
    to: (_, change) => sectionPath(change.organization.id, "overview"),
    async render(ctx, problem) {
      ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
      const { errors, ...error } = splitFieldErrors(problem);
      const name = problem && String((await formFieldsOf(ctx)).name ?? "");
      const body = html`<div class="panel">${namingForm(name, errors.name)}</div>`;
      return { title: "New organization", ...error, body };
    },
  });
};

function firstOrganization(): Html {
  return html`<div class="panel"><h2>Create an organization</h2>
<p class="soft">Links, members and API access belong to an organization. If you received an invitation link, open it instead.</p>
${namingForm()}</div>`;
}

function namingForm(name?: string, error?: string): Html {
  return html`<form method="post" action="/dashboard/organizations" class="stack">${ui.CSRF_FIELD}
${ui.field({ name: "name", label: "Name", value: name, hint: "You can change it later.", error, attributes: html`required maxlength="100" autocomplete="organization"` })}
<button type="submit">Create organization</button>
</form>`;
}
