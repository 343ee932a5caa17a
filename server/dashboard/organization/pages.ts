import type { Membership } from "../../../adapters/organizations/store.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { isPaid } from "../../../resources/plans.ts";
import { CSRF_FIELD, field, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { clicksPanel } from "../links/analytics.ts";

export function noOrganizations(): Html {
  return html`<div class="panel"><h2>Create your first organization</h2>
<p class="soft">Links, members and API access belong to an organization. If you received an invitation link, open it instead.</p>
${namingForm()}</div>`;
}

/** Renders the list of organizations for a user with several who hasn't opened one yet. */
export function organizationChoice(memberships: Membership[]): Html {
  return html`<ul class="tiles">${memberships.map(
    ({
      id,
      name,
      plan,
      role,
    }) => html`<li class="panel"><h2><a href="${sectionPath(id, "overview")}">${name}</a></h2>
<p class="soft">${capitalized(plan)} plan · ${capitalized(role)}</p></li>`,
  )}</ul>
<p>${linkButton("/dashboard/organizations/new", "New organization", "quiet")}</p>`;
}

type Naming = { name?: string | undefined; error?: string | undefined };

export function newOrganizationForm(naming: Naming): Html {
  return html`<div class="panel">${namingForm(naming)}</div>`;
}

function namingForm({ name, error }: Naming = {}): Html {
  return html`<form method="post" action="/dashboard/organizations" class="stack">${CSRF_FIELD}
${field({ name: "name", label: "Name", value: name, hint: "You can change it later.", error, attributes: html`required maxlength="100" autocomplete="organization"` })}
<button type="submit">Create organization</button>
</form>`;
}

type Overview = {
  membership: Membership;
  counts: { links: number; apps: number; members: number };
  /** The clicks of all links in the last 30 days. */
  clicks: AnalyticsView;
};

/** Renders an organization's overview: key numbers, next steps and clicks. */
export function overview({ membership, counts, clicks }: Overview): Html {
  const { id, plan } = membership;
  return html`<ul class="tiles figures">
${tile("Plan", capitalized(plan), sectionPath(id, "plan"))}
${tile("Links", counts.links.toLocaleString("en"), sectionPath(id, "links"))}
${tile("Apps", counts.apps.toLocaleString("en"), sectionPath(id, "apps"))}
${tile("Members", counts.members.toLocaleString("en"), sectionPath(id, "members"))}
</ul>
${counts.links === 0 && firstLink(membership)}
${nextStep(membership)}
${counts.links + clicks.clicks > 0 && totals(membership, clicks)}`;
}

function tile(title: string, value: string, href: string): Html {
  return html`<li><a class="panel" href="${href}"><span>${title}</span> <strong class="figure">${value}</strong></a></li>`;
}

function totals({ id }: Membership, clicks: AnalyticsView): Html {
  return clicksPanel(clicks, {
    title: "Clicks in the last 30 days",
    empty: "No clicks in the last 30 days.",
    more: linkButton(`${sectionPath(id, "overview")}/analytics`, "View analytics", "quiet"),
    showSources: false,
  });
}

function firstLink({ id }: Membership): Html {
  return html`<section class="panel"><h2>Create your first link</h2>
<p class="soft">Short links redirect anywhere and count every click.</p>
${linkButton(`${sectionPath(id, "links")}/new`, "Create link")}</section>`;
}

function nextStep(membership: Membership): Html {
  const { id, plan } = membership;
  if (isPaid(plan)) {
    return html`<section class="panel"><h2>AI clients and API</h2>
<p class="soft">Connect Claude, ChatGPT, Cursor or another AI client, or use the API from your own code.</p>
<div class="actions">${linkButton(sectionPath(id, "connect"), "Connect an AI client")}${
      isManager(membership) &&
      linkButton(`${sectionPath(id, "client")}/quick-start`, "Open quick start", "quiet")
    }</div></section>`;
  }
  if (!isManager(membership)) return html``;
  return html`<section class="panel"><h2>Get started with the API</h2>
<p class="soft">Upgrade to use the REST API, MCP and webhooks with your own OAuth client.</p>
${linkButton(sectionPath(id, "plan"), "Compare plans", "quiet")}</section>`;
}

export function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
