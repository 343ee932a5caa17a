import type { ClientView } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { isPaid } from "../../../resources/plans.ts";
import { breakable, CSRF_FIELD, copyable, formButton, linkButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { disabledAlert, switchPanel } from "./client-switch.ts";
import { keysSection } from "./keys.ts";
import { secretsSection } from "./secrets.ts";

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
  endpoints: ReturnType<typeof endpointsOf>;
};

/** Names endpoints as RFC 8414 does, plus those of the API and MCP. */
export function endpointsOf({ base, api, mcp }: PublicUrls) {
  return {
    issuer: base,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    revocation_endpoint: `${base}/oauth/revoke`,
    introspection_endpoint: `${base}/oauth/introspect`,
    api,
    mcp,
  };
}

const LABELS: Record<keyof ReturnType<typeof endpointsOf>, string> = {
  issuer: "Issuer",
  authorization_endpoint: "Authorization",
  token_endpoint: "Token",
  revocation_endpoint: "Revocation",
  introspection_endpoint: "Introspection",
  api: "REST API",
  mcp: "MCP",
};

export function clientPage({ membership, client, requiresDpop, endpoints }: ClientPage): Html {
  const path = sectionPath(membership.id, "client");
  const hasAccess = isPaid(membership.plan);
  return html`${disabledAlert(client.disabled)}${!hasAccess && html`<p class="alert">This organization is on the Free plan, so its client is rejected. Upgrade to use it again.</p>`}
<section class="panel"><h2>Client</h2>
<dl class="facts"><dt>Client ID</dt><dd>${copyable(client.clientId, "client ID")}</dd></dl>
${hasAccess ? linkButton(`${path}/quick-start`, "Open quick start") : linkButton(sectionPath(membership.id, "plan"), "Compare plans")}
</section>
${secretsSection(client, path)}
${keysSection(client, path)}
<section class="panel"><h2>Workload identity</h2>
<p class="soft">Let GitHub Actions, GitLab and Kubernetes call the API without a secret.</p>
${linkButton(`${sectionPath(membership.id, "overview")}/workload-identity`, "Manage trust rules", "quiet")}
</section>
<section class="panel"><h2>Redirect URIs</h2>
<p class="soft">Where users return after authorizing your app. One per line. Leave empty if you only use client credentials.</p>
<form method="post" action="${path}/redirect-uris" class="stack">${CSRF_FIELD}
<div class="field wide"><label for="redirect_uris" class="visually-hidden">Redirect URIs</label>
<textarea id="redirect_uris" name="redirect_uris" spellcheck="false" aria-describedby="uris-hint">${client.redirectUris.join("\n")}</textarea>
<p class="hint" id="uris-hint">https URLs must match exactly. http is allowed for localhost, 127.0.0.1 and [::1], on any port. Private-use schemes such as com.example.app:/callback also work.</p></div>
<button type="submit">Save redirect URIs</button>
</form></section>
${dpopPanel(membership, requiresDpop)}
${fapiPanel(membership, client)}
<section class="panel"><h2>Endpoints</h2>
<dl class="facts">${Object.entries(endpoints).map(
    ([name, url]) =>
      html`<dt>${LABELS[name as keyof typeof LABELS]}</dt><dd><code>${breakable(url)}</code></dd>`,
  )}</dl></section>
${switchPanel(membership, client.disabled)}`;
}

function dpopPanel(membership: Membership, isRequired: boolean): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/require-dpop`,
    text: isRequired ? "Stop requiring DPoP" : "Require DPoP",
    look: isRequired ? "quiet" : "danger",
    fields: { require_dpop: String(!isRequired) },
  });
  return html`<section class="panel"><h2>Token binding</h2>
<p class="soft">With DPoP (RFC 9449), a token is bound to a key of the app, so a stolen token is useless without that key. Apps that support DPoP can always use it.</p>
<p>${
    isRequired
      ? "This organization requires DPoP. Tokens that aren’t bound to a key are rejected."
      : "This organization also accepts bearer tokens. Requiring DPoP stops all bearer tokens immediately."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}

function fapiPanel(membership: Membership, { fapi }: ClientView): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/fapi`,
    text: fapi ? "Turn off FAPI 2.0" : "Turn on FAPI 2.0",
    look: fapi ? "quiet" : "danger",
    fields: { fapi: String(!fapi) },
  });
  return html`<section class="panel"><h2>FAPI 2.0</h2>
<p class="soft">The FAPI 2.0 Security Profile restricts the client to pushed authorization requests, <code>private_key_jwt</code> with PS256, ES256 or EdDSA, and DPoP.</p>
<p>${
    fapi
      ? "The client follows FAPI 2.0. All other requests are rejected."
      : "To turn it on, add a public key, and remove all secrets and all redirect URIs without https. The client’s bearer tokens stop working immediately."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}
