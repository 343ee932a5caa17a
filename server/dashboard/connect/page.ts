import type { Membership } from "../../../adapters/organizations/store.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { listing, prose } from "../../docs/prose.ts";
import { badge, copyButton, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import type { Acceptance, Refusal } from "./acceptance.ts";
import type { Guide } from "./guides.ts";
import type { Step } from "./steps.ts";

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

/** Renders the steps that connect a host, or why it can't connect and what to do instead. */
function guidePanel(guide: Guide, membership: Membership, username: string): Html {
  const { name, obstacle, steps } = guide;
  if (!obstacle) {
    const consent = `Sign in as ${username} in the browser window that opens, select ${membership.name} and choose Allow.`;
    return html`<section class="panel"><h2>${name}</h2>
${stepList(name, [...steps, { text: consent }])}
</section>`;
  }
  return html`<section class="panel"><h2>${name}</h2>
<p class="alert">${prose(obstacle.detail)}</p>
</section>
${ownClientPanel(guide, membership)}`;
}

/** Renders how to use the organization's own client, which needs its secret. */
function ownClientPanel({ name, ownClient }: Guide, { name: organization }: Membership): Html {
  if (!ownClient) return html``;
  const addRedirectUri = {
    text: "Under API access, add this to the redirect URIs.",
    code: ownClient.redirectUri,
  };
  return html`<section class="panel"><h2>Use the organization’s own client</h2>
<p class="soft">${name} can also use the client ID and secret of ${organization}. Anyone who has the secret can use the whole API, so give it only to users who may do that.</p>
${stepList(`${name} with a client ID`, [addRedirectUri, ...ownClient.steps])}
</section>`;
}

/** Renders the steps of a guide; `label` tells its blocks of code apart from those of other guides. */
function stepList(label: string, steps: Step[]): Html {
  return html`<ol class="steps">${steps.map(
    ({ text, code, link }, index) => html`<li><p>${prose(text)}</p>
${link ? linkButton(link.href, link.text) : html``}${code ? codeBlock(`${label}, step ${index + 1}`, code) : html``}</li>
`,
  )}</ol>`;
}

function codeBlock(label: string, code: string): Html {
  return html`<div class="code">${listing(label, code)}${copyButton(code, label)}</div>`;
}

/** Renders where to start with programs that act for the organization itself. */
function scriptsPanel(membership: Membership): Html {
  return html`<section class="panel"><h2>Scripts and CI</h2>
<p>Scripts, servers and agents without a browser act for the organization itself, with the REST API or the MCP server. They get tokens with the client credentials grant. CI jobs and clusters need no secret: they exchange the tokens of their platform.</p>
${isManager(membership) ? scriptLinks(membership.id) : html`<p class="soft">Owners and admins find quick starts for both under API access.</p>`}
</section>`;
}

function scriptLinks(organizationId: string): Html {
  const quickStart = `${sectionPath(organizationId, "client")}/quick-start`;
  const workloadIdentity = `${sectionPath(organizationId, "overview")}/workload-identity`;
  return html`<div class="actions">${linkButton(quickStart, "Open quick start")}${linkButton(workloadIdentity, "Set up workload identity", "quiet")}</div>`;
}

function permissions({ id, role }: Membership, scopes: ConnectPage["scopes"]): Html {
  return html`<section class="panel"><h2>What an app may do</h2>
<p class="soft">You see what an app asks for before you allow it. It can never do more than your role allows. Your role is ${role}, so you can allow:</p>
<dl class="facts">${scopes.map(({ name, description }) => html`<dt><code>${name}</code></dt><dd>${description}</dd>`)}</dl>
<p>Access expires after 90 days. You can revoke it at any time under <a href="${sectionPath(id, "apps")}">Apps</a>.</p>
</section>`;
}

/** Renders which kinds of apps can connect, and which setting decides it. */
function acceptedApps({ id, name }: Membership, accepted: Acceptance, requiresDpop: boolean): Html {
  const reasons: Record<Refusal, Html> = {
    documents_disabled: turnedOffBy("CIMD"),
    registration_disabled: turnedOffBy("DYNAMIC_REGISTRATION"),
    not_allowed: html`Not allowed by ${name}, see <a href="${sectionPath(id, "apps")}">Apps</a>.`,
  };
  const fact = (title: string, about: string, refusal: Refusal | undefined) =>
    html`<dt>${title}</dt><dd>${refusal ? badge("not accepted") : badge("accepted", "good")}
<span class="soft">${about}</span>${refusal ? html`<p class="hint">${reasons[refusal]}</p>` : html``}</dd>`;
  return html`<section class="panel"><h2>Which apps can connect</h2>
<dl class="facts">
${fact("Known AI clients", KNOWN_CLIENT_NAMES, accepted.knownDocument)}
${fact("Other apps", "identified by a metadata document", accepted.otherDocument)}
${fact("Registered apps", "Cursor, Gemini CLI and other apps on your computer that register themselves", accepted.registration)}
</dl>${requiresDpop ? html`<p class="alert">${name} requires DPoP: an app has to bind its tokens to a key as well.</p>` : html``}</section>`;
}

function turnedOffBy(setting: string): Html {
  return html`Turned off on this server, by its setting <code>${setting}</code>.`;
}
