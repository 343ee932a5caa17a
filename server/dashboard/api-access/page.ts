import type { ClientView } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { isPaid } from "../../../resources/plans.ts";
import { breakable, copyable, csrfField, formButton, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { disabledAlert, switchPanel } from "./client-switch-panel.ts";
import { keysSection, secretsSection } from "./credentials-section.ts";
import type { Endpoints } from "./endpoints.ts";

type Panel = { membership: Membership; isRequired: boolean; csrf: string | undefined };

/** Renders the page of an organization that has never been on a paid plan. */
export function noClientPage(organizationId: string): Html {
  return emptyState(
    "No client yet",
    "Upgrade to Growth or Premium to get an OAuth client: an ID and a secret for the REST API and MCP.",
    linkButton(sectionPath(organizationId, "plan"), "Compare plans"),
  );
}

type ClientPage = {
  membership: Membership;
  client: ClientView;
  requiresDpop: boolean;
  endpoints: Endpoints;
  csrf: string | undefined;
};

const LABELS: Record<keyof Endpoints, string> = {
  issuer: "Issuer",
  authorization_endpoint: "Authorization",
  token_endpoint: "Token",
  revocation_endpoint: "Revocation",
  introspection_endpoint: "Introspection",
  api: "REST API",
  mcp: "MCP",
};

/** Renders the client: its ID, secrets, keys, redirect URIs and endpoints. */
export function clientPage({ membership, client, requiresDpop, endpoints, csrf }: ClientPage): Html {
  const path = sectionPath(membership.id, "client");
  const hasAccess = isPaid(membership.plan);
  return html`${disabledAlert(client.disabled)}${hasAccess ? html`` : html`<p class="alert">This organization is on the Free plan, so its client is rejected. Upgrade to use it again.</p>`}
<section class="panel"><h2>Client</h2>
<dl class="facts"><dt>Client ID</dt><dd>${copyable(client.clientId, "client ID")}</dd></dl>
${hasAccess ? linkButton(`${path}/quick-start`, "Open quick start") : linkButton(sectionPath(membership.id, "plan"), "Compare plans")}
</section>
${secretsSection(client, path, csrf)}
${keysSection(client, path)}
<section class="panel"><h2>Workload identity</h2>
<p class="soft">CI jobs and clusters can get access with tokens of their platform, so they need no client secret.</p>
${linkButton(`${sectionPath(membership.id, "overview")}/workload-identity`, "Manage trust rules", "quiet")}
</section>
<section class="panel"><h2>Redirect URIs</h2>
<p class="soft">Where users return after authorizing your app. One per line. Leave empty if you only use client credentials.</p>
<form method="post" action="${path}/redirect-uris" class="stack">${csrfField(csrf)}
<div class="field wide"><label for="redirect_uris" class="visually-hidden">Redirect URIs</label>
<textarea id="redirect_uris" name="redirect_uris" spellcheck="false" aria-describedby="uris-hint">${client.redirectUris.join("\n")}</textarea>
<p class="hint" id="uris-hint">https URLs must match exactly. http is allowed for localhost, 127.0.0.1 and [::1], on any port. Private-use schemes such as com.example.app:/callback also work.</p></div>
<button type="submit">Save redirect URIs</button>
</form></section>
${dpopPanel({ membership, isRequired: requiresDpop, csrf })}
<section class="panel"><h2>Endpoints</h2>
<dl class="facts">${Object.entries(endpoints).map(
    ([name, url]) => html`<dt>${LABELS[name as keyof Endpoints]}</dt><dd><code>${breakable(url)}</code></dd>`,
  )}</dl></section>
${switchPanel({ membership, disabled: client.disabled, csrf })}`;
}

/** Renders whether the organization requires DPoP; owners can change it. */
function dpopPanel({ membership, isRequired, csrf }: Panel): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/require-dpop`,
    csrf,
    text: isRequired ? "Stop requiring DPoP" : "Require DPoP",
    look: isRequired ? "quiet" : "danger",
    fields: { require_dpop: String(!isRequired) },
  });
  return html`<section class="panel"><h2>Token binding</h2>
<p class="soft">With DPoP (RFC 9449), a token is bound to a key of the app, so a stolen token is useless without that key. Apps that support DPoP can always use it.</p>
<p>${
    isRequired
      ? "This organization requires DPoP. Tokens that aren’t bound to a key are rejected."
      : "This organization also accepts bearer tokens. If you require DPoP, they stop working immediately, for your client and for authorized apps."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}
