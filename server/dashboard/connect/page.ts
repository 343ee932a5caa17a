import type { Membership } from "../../../adapters/organizations/store.ts";
import { linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import type { Acceptance } from "./acceptance.ts";
import { acceptedApps } from "./accepted-apps.ts";
import { guidePanel } from "./guide-panel.ts";
import type { Guide } from "./guides.ts";
import { scriptsPanel } from "./scripts-panel.ts";

/** Renders the page of an organization on the Free plan. */
export function planRequiredPage(organizationId: string): Html {
  return emptyState(
    "AI clients need a paid plan",
    "Upgrade to Growth or Premium to connect AI clients to this organization.",
    linkButton(sectionPath(organizationId, "plan"), "Compare plans"),
  );
}

type ConnectPage = {
  membership: Membership;
  username: string;
  guides: Guide[];
  /** The tab that the URL names. */
  selected: string;
  /** The scopes that apps may have on behalf of the member. */
  scopes: { name: string; description: string }[];
  accepted: Acceptance;
  requiresDpop: boolean;
};

/** The tab of programs that need no user. */
const SCRIPTS = { id: "scripts", name: "Scripts and CI", obstacle: null };

/** Renders one tab per host, what an app may do, and which apps can connect. */
export function connectPage(options: ConnectPage): Html {
  const { membership, username, guides, selected, scopes, accepted, requiresDpop } = options;
  const tabs = [...guides, SCRIPTS];
  const firstAvailable = guides.find(({ obstacle }) => !obstacle) ?? guides[0];
  const current = tabs.find(({ id }) => id === selected) ?? firstAvailable ?? SCRIPTS;
  const guide = guides.find(({ id }) => id === current.id);
  return html`<nav class="tabs" aria-label="AI clients"><ul>
${tabs.map((tab) => tabLink(tab, tab === current))}</ul></nav>
${guide ? guidePanel(guide, membership, username) : scriptsPanel(membership)}
${guide ? html`${permissions(membership, scopes)}${acceptedApps(membership, accepted, requiresDpop)}` : html``}`;
}

function tabLink({ id, name, obstacle }: Pick<Guide, "id" | "name" | "obstacle">, isCurrent: boolean): Html {
  const current = isCurrent ? html` aria-current="page"` : html``;
  return html`<li><a href="?host=${id}"${current}${obstacle ? html` class="soft"` : html``}>${name}${
    obstacle ? html`<span class="visually-hidden"> (can’t connect)</span>` : html``
  }</a></li>
`;
}

function permissions({ id, role }: Membership, scopes: ConnectPage["scopes"]): Html {
  return html`<section class="panel"><h2>What an app may do</h2>
<p class="soft">You see what an app asks for before you allow it. It can never do more than your role allows. Your role is ${role}, so you can allow:</p>
<dl class="facts">${scopes.map(({ name, description }) => html`<dt><code>${name}</code></dt><dd>${description}</dd>`)}</dl>
<p>Access expires after 90 days. You can revoke it at any time under <a href="${sectionPath(id, "apps")}">Apps</a>.</p>
</section>`;
}
