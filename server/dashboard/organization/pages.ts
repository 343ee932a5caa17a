import type { Membership } from "../../../adapters/organizations.ts";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { isPaid } from "../../../resources/plans.ts";
import { type Html, html } from "../html.ts";
import { clicksPanel } from "./clicks.ts";
import { csrfField, field, formButton, linkButton } from "./controls.ts";
import { isManager, sectionPath } from "./layout.ts";

/** What somebody sees who belongs to no organization. */
export function noOrganizations(csrf: string | undefined): Html {
  return html`<div class="panel"><h2>Create your first organization</h2>
<p class="soft">Links, members and API access belong to an organization. If you were given an invitation, open its link instead.</p>
${namingForm({ csrf })}</div>`;
}

/** Lets somebody choose who belongs to several and has looked at none yet. */
export function organizationChoice(memberships: Membership[]): Html {
  return html`<ul class="tiles">${memberships.map(
    ({
      id,
      name,
      plan,
      role,
    }) => html`<li class="panel"><h2><a href="${sectionPath(id, "overview")}">${name}</a></h2>
<p class="soft">${capitalized(plan)} plan, you are ${role}</p></li>`,
  )}</ul>
<p>${linkButton("/dashboard/organizations/new", "New organization", "quiet")}</p>`;
}

type Naming = { csrf: string | undefined; name?: string | undefined; error?: string | undefined };

/** Asks for the name of a new organization. */
export function newOrganizationForm(naming: Naming): Html {
  return html`<div class="panel">${namingForm(naming)}</div>`;
}

function namingForm({ csrf, name, error }: Naming): Html {
  return html`<form method="post" action="/dashboard/organizations" class="stack">${csrfField(csrf)}
${field({ name: "name", label: "Name", value: name, hint: "You can change it later.", error, attributes: html`required maxlength="100" autocomplete="organization"` })}
<button type="submit">Create organization</button>
</form>`;
}

type Overview = {
  membership: Membership;
  counts: { links: number; apps: number; members: number };
  /** The clicks of all links in the last 30 days. */
  clicks: AnalyticsView;
  csrf: string | undefined;
  /** A new name that was refused, and why. */
  refused: Pick<Naming, "name" | "error">;
};

/** An organization at a glance, what to do next, and how to rename, leave and delete it. */
export function overview({ membership, counts, clicks, csrf, refused }: Overview): Html {
  const { id, plan, role } = membership;
  return html`<ul class="tiles figures">
${tile("Plan", capitalized(plan), sectionPath(id, "plan"))}
${tile("Links", counts.links.toLocaleString("en"), sectionPath(id, "links"))}
${tile("Apps", counts.apps.toLocaleString("en"), sectionPath(id, "apps"))}
${tile("Members", counts.members.toLocaleString("en"), sectionPath(id, "members"))}
</ul>
${counts.links > 0 ? html`` : firstLink(membership)}
${nextStep(membership)}
${counts.links + clicks.total > 0 ? totals(membership, clicks) : html``}
${isManager(membership) ? renameForm(membership, { csrf, ...refused }) : html``}
<section class="panel"><h2>Leave</h2>
<p class="soft">Your role here is ${role}. What apps may do here in your name ends when you go.</p>
${formButton({ action: `${sectionPath(id, "members")}/me/delete`, csrf, text: "Leave organization" })}
</section>
${
  role === "owner"
    ? html`<section class="panel danger"><h2>Delete</h2>
<p class="soft">Ends every token and all management of links. Short links will answer that they are gone.</p>
${linkButton(`${sectionPath(id, "overview")}/delete`, "Delete organization", "danger")}</section>`
    : html``
}`;
}

function tile(title: string, value: string, href: string): Html {
  return html`<li><a class="panel" href="${href}"><span>${title}</span> <strong class="figure">${value}</strong></a></li>`;
}

function totals({ id }: Membership, clicks: AnalyticsView): Html {
  return clicksPanel(clicks, {
    title: "Clicks of all links in the last 30 days",
    empty: "Nobody followed a link of yours in the last 30 days.",
    more: linkButton(`${sectionPath(id, "overview")}/analytics`, "Where they came from", "quiet"),
    isWhole: false,
  });
}

function firstLink({ id }: Membership): Html {
  return html`<section class="panel"><h2>Make your first link</h2>
<p class="soft">A short address to share or print, which leads where you want and counts who follows it.</p>
${linkButton(`${sectionPath(id, "links")}/new`, "New link")}</section>`;
}

function nextStep(membership: Membership): Html {
  if (!isManager(membership)) return html``;
  const { id, plan } = membership;
  if (!isPaid(plan)) {
    return html`<section class="panel"><h2>Start with the API</h2>
<p class="soft">Growth and Premium open the REST API, MCP and webhooks, with a client of your own.</p>
${linkButton(sectionPath(id, "plan"), "Choose a plan", "quiet")}</section>`;
  }
  return html`<section class="panel"><h2>Start with the API</h2>
<p class="soft">Snippets with your client id in them, for curl, TypeScript, Python and MCP hosts.</p>
${linkButton(`${sectionPath(id, "client")}/quick-start`, "Open the quick start")}</section>`;
}

function renameForm({ id, name: current }: Membership, { csrf, name = current, error }: Naming): Html {
  return html`<section class="panel">
<form method="post" action="${sectionPath(id, "overview")}" class="row">${csrfField(csrf)}
${field({ name: "name", label: "Organization name", value: name, error, attributes: html`required maxlength="100"` })}
<button type="submit" class="quiet">Rename</button>
</form></section>`;
}

/** Asks for the name before everything ends. */
export function deletionForm({ id, name }: Membership, csrf: string | undefined): Html {
  return html`<div class="panel danger">
<p>This cannot be undone. At once:</p>
<ul>
<li>every access token of the organization is refused, and apps lose what they were allowed;</li>
<li>its client, secrets, webhooks, members and invitations are gone;</li>
<li>its short links answer that they are gone, and their addresses are never given out again.</li>
</ul>
<form method="post" action="${sectionPath(id, "overview")}/delete" class="stack">${csrfField(csrf)}
${field({ name: "name", label: `Type “${name}” to confirm`, attributes: html`required autocomplete="off"` })}
<button type="submit" class="danger">Delete organization</button>
</form></div>`;
}

/** The name of a plan or a role, as a word of its own. */
export function capitalized(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
