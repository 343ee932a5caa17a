import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import type { ClickedLink } from "../../../resources/links/types.ts";
import { isPaid, type Limits, limitsOf } from "../../../resources/plans.ts";
import type { Webhook } from "../../../resources/webhooks/types.ts";
import { badge, CSRF_FIELD, icon, linkButton, meter, time } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { clicksPanel, topLinksPanel } from "../links/analytics.ts";
import { statusOf, type WebhookStatus } from "../webhooks/context.ts";
import { groupSummaryOf, groupsOf } from "./audit-page.ts";
import { actorNameOf, summaryOf } from "./audit-sentences.ts";
import { capitalized } from "./pages.ts";

type Overview = {
  membership: Membership;
  usage: Pick<Limits, "links">;
  counts: { apps: number; members: number };
  webhooks: Webhook[];
  /** The clicks of all links in the last 30 days, and their number in the 30 days before. */
  clicks: AnalyticsView;
  previous: number | undefined;
  topLinks: ClickedLink[];
  /** The latest entries of the audit log, for managers. */
  activity: AuditEntry[];
  /** Whether the log may have older ones. */
  hasMoreActivity: boolean;
  isChecklistDismissed: boolean;
  shortUrl: string;
};

const ACTIVITIES = 6;

/** Renders what happened lately, with the plan and what needs attention at the side. */
export function overviewPage(page: Overview): Html {
  const { membership, usage, clicks, previous, topLinks, activity, shortUrl } = page;
  const links = sectionPath(membership.id, "links");
  return html`<div class="beside"><div>
${
  usage.links + clicks.clicks > 0 &&
  clicksPanel(clicks, {
    title: "Clicks in the last 30 days",
    empty: "No clicks in the last 30 days.",
    more: linkButton(sectionPath(membership.id, "analytics"), "View analytics", "quiet"),
    showSources: false,
    previous,
  })
}
${topLinks.length > 0 && topLinksPanel(topLinks, clicks.clicks, links, shortUrl)}
${activity.length > 0 && activityPanel(page)}
</div>
<aside aria-label="Organization">
${!page.isChecklistDismissed && checklist(page)}
${planPanel(page)}
${isManager(membership) && isPaid(membership.plan) && webhooksPanel(page)}
</aside></div>`;
}

type Step = { isDone: boolean; text: string; href: string };

/** Renders the steps that aren't done yet, and those that are, until all of them are. */
function checklist({ membership, usage, counts }: Overview): Html {
  const { id, plan } = membership;
  const manages = isManager(membership);
  const steps: (Step | false)[] = [
    { isDone: usage.links > 0, text: "Create your first link", href: `${sectionPath(id, "links")}/new` },
    isPaid(plan)
      ? { isDone: counts.apps > 0, text: "Connect an AI client or app", href: sectionPath(id, "connect") }
      : manages && { isDone: false, text: "Upgrade to use the API", href: sectionPath(id, "plan") },
    manages && { isDone: counts.members > 1, text: "Invite a colleague", href: sectionPath(id, "members") },
  ];
  const shown = steps.filter((step) => step !== false);
  if (shown.every(({ isDone }) => isDone)) return html``;
  return html`<section class="panel"><div class="title"><h2>Get started</h2>
<form method="post" action="${sectionPath(id, "overview")}/checklist" class="inline">${CSRF_FIELD}<button type="submit" class="glyph">${icon("x")}<span class="visually-hidden">Dismiss</span></button></form></div>
<ul class="checklist">${shown.map(
    ({ isDone, text, href }) =>
      html`<li>${isDone ? html`${icon("circle-check")}<span class="soft">${text}<span class="visually-hidden"> (done)</span></span>` : html`${icon("circle")}<a href="${href}">${text}</a>`}</li>
`,
  )}</ul></section>`;
}

function planPanel({ membership, usage, counts }: Overview): Html {
  const { id, plan } = membership;
  const limits = limitsOf(plan);
  const row = (name: string, href: string, used: number, limit?: number) =>
    html`<li><a href="${href}">${name}</a><span>${used.toLocaleString("en")}${
      limit !== undefined && html`<span class="soft"> of ${limit.toLocaleString("en")}</span>`
    }</span>${limit !== undefined && meter(used / limit)}</li>
`;
  return html`<section class="panel"><div class="title"><h2>${capitalized(plan)} plan</h2>${linkButton(sectionPath(id, "plan"), "Plans", "quiet")}</div>
<ul class="usage">
${row("Links", sectionPath(id, "links"), usage.links, limits.links)}${row("Members", sectionPath(id, "members"), counts.members, limits.members)}${row("Apps", sectionPath(id, "apps"), counts.apps)}</ul></section>`;
}

function webhooksPanel({ membership, webhooks }: Overview): Html {
  const { id, plan } = membership;
  const href = sectionPath(id, "webhooks");
  const countOf = (status: WebhookStatus) => webhooks.filter((one) => statusOf(one, plan) === status).length;
  const [failing, unverified, active] = [countOf("failing"), countOf("unverified"), countOf("active")];
  const state = html`${failing > 0 && badge(`${failing} failing`, "bad")}${unverified > 0 && badge(`${unverified} unverified`, "warn")}${failing + unverified === 0 && active > 0 && badge("Healthy", "good")}`;
  return html`<section class="panel"><div class="title"><h2>Webhooks</h2><span class="tags">${state}</span></div>
<p class="soft">${webhooks.length === 0 ? "Receive events at your own endpoint." : `${webhooks.length} of ${limitsOf(plan).webhooks}`}</p>
${linkButton(webhooks.length === 0 ? `${href}/new` : href, webhooks.length === 0 ? "Create webhook" : "View webhooks", "quiet")}</section>`;
}

function activityPanel({ activity, hasMoreActivity, membership: { id } }: Overview): Html {
  const groups = groupsOf(activity);
  const lines = groups.slice(0, ACTIVITIES).map((group) => {
    const [{ at }] = group;
    const isCut = hasMoreActivity && group === groups.at(-1);
    const summary = group.length > 1 ? groupSummaryOf(group, isCut) : summaryOf(group[0]);
    return html`<li><span><bdi>${actorNameOf(group[0])}</bdi> ${summary}</span><span class="soft">${time(at)}</span></li>
`;
  });
  return html`<section class="panel"><div class="title"><h2>Recent activity</h2>${linkButton(sectionPath(id, "audit"), "Audit log", "quiet")}</div>
<ul class="activity">${lines}</ul></section>`;
}
