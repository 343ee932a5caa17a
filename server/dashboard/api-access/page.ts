import type { ClientView } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { isPaid } from "../../../resources/plans.ts";
import {
  badge,
  breakable,
  copyable,
  csrfField,
  field,
  formButton,
  linkButton,
  time,
} from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, emptyState, table } from "../../ui/table.ts";
import type { Endpoints } from "./endpoints.ts";

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

/** Renders the client: its ID, secrets, redirect URIs and endpoints. */
export function clientPage({ membership, client, endpoints, csrf }: ClientPage): Html {
  const path = sectionPath(membership.id, "client");
  const hasAccess = isPaid(membership.plan);
  return html`${hasAccess ? html`` : html`<p class="alert">This organization is on the Free plan, so its client is rejected. Upgrade to use it again.</p>`}
<section class="panel"><h2>Client</h2>
<dl class="facts"><dt>Client ID</dt><dd>${copyable(client.clientId, "client ID")}</dd></dl>
${hasAccess ? linkButton(`${path}/quick-start`, "Open quick start") : linkButton(sectionPath(membership.id, "plan"), "Compare plans")}
</section>
<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">Only the last four characters are shown. Tokens stay valid after a secret expires.</p></div>
${linkButton(`${path}/rotate`, "Rotate secret", "quiet")}</div>
${secrets(client, path, csrf)}</section>
<section class="panel"><h2>Redirect URIs</h2>
<p class="soft">Where users return after authorizing your app. One per line. Leave empty if you only use client credentials.</p>
<form method="post" action="${path}/redirect-uris" class="stack">${csrfField(csrf)}
<div class="field wide"><label for="redirect_uris" class="visually-hidden">Redirect URIs</label>
<textarea id="redirect_uris" name="redirect_uris" spellcheck="false" aria-describedby="uris-hint">${client.redirectUris.join("\n")}</textarea>
<p class="hint" id="uris-hint">https URLs must match exactly. http is allowed for localhost, 127.0.0.1 and [::1], on any port. Private-use schemes such as com.example.app:/callback also work.</p></div>
<button type="submit">Save redirect URIs</button>
</form></section>
<section class="panel"><h2>Endpoints</h2>
<dl class="facts">${Object.entries(endpoints).map(
    ([name, url]) => html`<dt>${LABELS[name as keyof Endpoints]}</dt><dd><code>${breakable(url)}</code></dd>`,
  )}</dl></section>`;
}

type Secret = ClientView["secrets"][number];

function secrets({ secrets }: ClientView, path: string, csrf: string | undefined): Html {
  const columns: Column<Secret>[] = [
    { head: "Secret", cell: ({ last4 }) => html`<code>…${last4}</code>` },
    { head: "Created", cell: ({ createdAt }) => time(createdAt) },
    { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
    {
      head: "Expires",
      cell: ({ expiresAt }) => (expiresAt === null ? badge("active", "good") : time(expiresAt)),
    },
    {
      head: "Actions",
      cell: ({ id, last4, expiresAt }) =>
        expiresAt === null
          ? ""
          : formButton({
              action: `${path}/secrets/${id}/delete`,
              csrf,
              text: "Revoke",
              about: `secret ending in ${last4}`,
              look: "danger",
            }),
    },
  ];
  return table("Secrets", columns, secrets);
}

/** Renders the form that asks for the reason and the overlap of a rotation. */
export function rotationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<fieldset><legend>Reason</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> Scheduled rotation: the old secret stays valid for a while</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Compromised secret: revoke all older secrets, tokens and app authorizations of this client now</label>
</fieldset>
${field({
  name: "overlap_hours",
  label: "Keep the old secret valid for (hours)",
  type: "number",
  value: 24,
  hint: "0 to 168. Ignored if the secret is compromised. Only two secrets can be active: a third one revokes the oldest.",
  attributes: html`min="0" max="168" step="any"`,
})}
<div class="actions"><button type="submit">Rotate secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
