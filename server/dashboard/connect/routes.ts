import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { API_SCOPES, allowedByRole, SCOPE_DESCRIPTIONS } from "../../../resources/access/scopes.ts";
import { isPaid } from "../../../resources/plans.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { LOOPBACK } from "../../settings/setting-types.ts";
import { badge, copyButton, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { paidPlanState, tabs } from "../../ui/table.ts";
import { membershipOf, pathTo, signedInUserOf } from "../access.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import {
  type Acceptance,
  acceptanceOf,
  type Conditions,
  type Guide,
  guideOf,
  HOSTS,
  REASONS,
  type Refusal,
  type Step,
} from "./guides.ts";

export const connectRoutes: RouteModule = (router, { storage, settings, urls, allow }) => {
  const { CIMD, DYNAMIC_REGISTRATION } = settings;
  router.get(`${ORGANIZATION}/connect`, allow(), async (ctx) => {
    const membership = membershipOf(ctx);
    const [client, own] = await Promise.all([
      storage.clients.findByOrganization(membership.id),
      storage.organizationSettings.find(membership.id),
    ]);
    const conditions: Conditions = {
      CIMD,
      DYNAMIC_REGISTRATION,
      plan: membership.plan,
      allowed: own?.allowedClients ?? "none",
      requiresDpop: own?.requiresDpop ?? false,
      isLocal: isLocal(urls),
    };
    const clientId = client?.secrets.length ? client.clientId : undefined;
    const options = { membership, conditions, mcpUrl: urls.mcp, clientId };
    const guides = HOSTS.map((host) => guideOf(host, options));
    const accepted = acceptanceOf(conditions);
    if (prefersHtml(ctx)) {
      const page = { title: "Connect", heading: "Connect an AI client", section: "connect" as const };
      if (!isPaid(membership.plan)) {
        const text = "Upgrade to Growth or Premium to connect AI clients to this organization.";
        const body = paidPlanState("AI clients need a paid plan", text, pathTo(ctx, "plan"));
        return showPage(ctx, { ...page, body });
      }
      const intro = `Let an AI client work with the links of ${membership.name}. Sign in and approve its permissions.`;
      return showPage(ctx, { ...page, intro, body: connectPage(ctx, guides, accepted, conditions, urls) });
    }
    const { knownDocument, otherDocument, registration } = accepted;
    ctx.body = {
      mcp_url: urls.mcp,
      mcp_read_url: urls.mcpRead,
      accepts: {
        known_documents: !knownDocument,
        other_documents: !otherDocument,
        registered_clients: !registration,
      },
      requires_dpop: conditions.requiresDpop,
      scopes: scopesOf(membership),
      hosts: guides,
    };
  });
};

function isLocal({ base, mcp }: PublicUrls): boolean {
  return [base, mcp].some((url) => LOOPBACK.has(new URL(url).hostname));
}

function scopesOf({ role }: Membership) {
  return API_SCOPES.filter((scope) => allowedByRole([scope], role).length > 0).map((scope) => ({
    name: scope,
    description: SCOPE_DESCRIPTIONS[scope],
  }));
}

const HOSTED =
  "Those that connect from their vendor’s servers, such as Claude and ChatGPT, can’t reach this one: it has no public https address.";
const NAME_LIST = new Intl.ListFormat("en-US");
const SCRIPTS = { id: "scripts", name: "Scripts and CI", available: true };

function connectPage(
  ctx: Context,
  guides: Guide[],
  accepted: Acceptance,
  conditions: Conditions,
  { mcpRead }: PublicUrls,
): Html {
  const membership = membershipOf(ctx);
  const pages = [...guides, SCRIPTS];
  const firstAvailable = guides.find(({ available }) => available) ?? guides[0];
  const current = pages.find(({ id }) => id === ctx.query.host) ?? firstAvailable ?? SCRIPTS;
  const guide = guides.find(({ id }) => id === current.id);
  const links = pages.map(({ id, name, available }) => ({
    href: `?host=${id}`,
    name: html`${name}${!available && html`<span class="visually-hidden"> (can’t connect)</span>`}`,
    isCurrent: id === current.id,
    isUnavailable: !available,
  }));
  return html`${tabs("AI clients", links)}
${unavailableHosts(guides, membership)}
${guide ? guidePanel(guide, membership, signedInUserOf(ctx).username) : scriptsPanel(membership)}
${guide && html`${permissions(membership, mcpRead)}${acceptedApps(membership, accepted, conditions)}`}`;
}

/** Says why hosts can’t connect, grouped by the reason. */
function unavailableHosts(guides: Guide[], { name }: Membership): Html {
  const reasonOf = ({ reason }: Guide) => reason && REASONS[reason][0];
  const groups = Map.groupBy(guides.filter(reasonOf), reasonOf);
  if (groups.size === 0) return html``;
  return html`<p class="soft">Can’t connect: ${[...groups].map(
    ([reason, hosts], index) =>
      html`${index > 0 && "; "}${NAME_LIST.format(hosts.map((host) => host.name))} (${reason?.replace("{organization}", () => name)})`,
  )}.</p>`;
}

function guidePanel(guide: Guide, membership: Membership, username: string): Html {
  const { name, detail, steps } = guide;
  if (detail === null) {
    const consent = `Sign in as ${username} in the browser window that opens, select ${membership.name} and choose Allow.`;
    return html`<section class="panel"><h2>${name}</h2>
${stepList(name, [...steps, { text: consent }])}
</section>`;
  }
  return html`<section class="panel"><h2>${name}</h2>
<p class="alert">${prose(detail)}</p>
</section>
${ownClientPanel(guide, membership)}`;
}

function ownClientPanel({ name, own_client }: Guide, { name: organization }: Membership): Html {
  if (!own_client) return html``;
  const addRedirectUri = {
    text: "Under API access, add this to the redirect URIs.",
    code: own_client.redirect_uri,
  };
  return html`<section class="panel"><h2>Use the organization’s own client</h2>
<p class="soft">${name} can also use the client ID and secret of ${organization}. Anyone who has the secret can use the whole API, so give it only to users who may do that.</p>
${stepList(`${name} with a client ID`, [addRedirectUri, ...own_client.steps])}
</section>`;
}

/** Renders the steps of a guide; `label` tells its blocks of code apart from those of other guides. */
function stepList(label: string, steps: Step[]): Html {
  return html`<ol class="steps">${steps.map(
    ({ text, code, link }, index) => html`<li><p>${prose(text)}</p>
${link && linkButton(link.href, link.text)}${code && codeBlock(`${label}, step ${index + 1}`, code)}</li>
`,
  )}</ol>`;
}

function codeBlock(label: string, code: string): Html {
  return html`<div class="code"><pre tabindex="0" role="region" aria-label="${label}"><code>${code}</code></pre>${copyButton(code, label)}</div>`;
}

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

function permissions(membership: Membership, readOnlyUrl: string): Html {
  const { id, role } = membership;
  return html`<section class="panel"><h2>What an app may do</h2>
<p class="soft">You see what an app asks for before you allow it. It can never do more than your role allows. Your role is ${role}, so you can allow:</p>
<dl class="facts">${scopesOf(membership).map(({ name, description }) => html`<dt><code>${name}</code></dt><dd>${description}</dd>`)}</dl>
<p>For an app that must not change anything, use this URL in the steps instead: <code class="long">${readOnlyUrl}</code></p>
<p>Access expires after 90 days. You can revoke it at any time under <a href="${sectionPath(id, "apps")}">Apps</a>.</p>
</section>`;
}

function acceptedApps(
  { id, name }: Membership,
  accepted: Acceptance,
  { requiresDpop, isLocal }: Conditions,
): Html {
  const reasons: Record<Refusal, Html> = {
    documents_disabled: switchedBy("CIMD", "other apps", accepted.knownDocument === "documents_disabled"),
    registration_disabled: switchedBy("DYNAMIC_REGISTRATION", "registered apps"),
    not_allowed: html`Not allowed by ${name}, see <a href="${sectionPath(id, "apps")}">Apps</a>.`,
  };
  const fact = (title: string, about: string, refusal: Refusal | undefined, hint = "") =>
    html`<dt>${title}</dt><dd>${refusal ? badge("not accepted") : badge("accepted", "good")}
<span class="soft">${about}</span>${refusal && html`<p class="hint">${reasons[refusal]}</p>`}${!refusal && hint && html`<p class="hint">${hint}</p>`}</dd>`;
  return html`<section class="panel"><h2>Which apps can connect</h2>
<dl class="facts">
${fact("Known AI clients", KNOWN_CLIENT_NAMES, accepted.knownDocument, isLocal ? HOSTED : "")}
${fact("Other apps", "identified by a metadata document", accepted.otherDocument)}
${fact("Registered apps", "Cursor, Gemini CLI and other apps on your computer that register themselves", accepted.registration)}
</dl>${requiresDpop && html`<p class="alert">${name} requires DPoP: an app has to bind its tokens to a key as well.</p>`}</section>`;
}

function switchedBy(setting: string, apps: string, isTurnedOff = false): Html {
  return html`${isTurnedOff ? "Turned off" : "Off by default"}. To allow ${apps}, set <code>${setting}</code>.`;
}

/** Renders a text in which backticks enclose code. */
function prose(text: string): Html {
  return html`${text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part))}`;
}
