import type { ClientView } from "../../../adapters/clients.ts";
import type { Membership } from "../../../adapters/organizations.ts";
import { isPaid } from "../../../resources/plans.ts";
import type { Endpoints } from "../../dashboard/endpoints.ts";
import { type Html, html } from "../html.ts";
import { badge, breakable, copyable, csrfField, field, formButton, linkButton, time } from "./controls.ts";
import { sectionPath } from "./layout.ts";
import { type Column, emptyState, table } from "./table.ts";

/** What there is to see before the first paid plan. */
export function noClientPage(organizationId: string): Html {
  return emptyState(
    "No client yet",
    "Growth and Premium give the organization an OAuth client of its own: an id and a secret that open the REST API and MCP.",
    linkButton(sectionPath(organizationId, "plan"), "Compare the plans"),
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

/** The client: its id, secrets, redirect URIs, and where it goes. */
export function clientPage({ membership, client, endpoints, csrf }: ClientPage): Html {
  const path = sectionPath(membership.id, "client");
  return html`${isPaid(membership.plan) ? html`` : html`<p class="alert">The organization is on the Free plan: this client is refused until you upgrade.</p>`}
<section class="panel"><h2>Client</h2>
<dl class="facts"><dt>Client id</dt><dd>${copyable(client.clientId, "the client id")}</dd></dl>
${linkButton(`${path}/quick-start`, "Open the quick start")}
</section>
<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">Only the last four characters are known here. Tokens live on when a secret ends.</p></div>
${linkButton(`${path}/rotate`, "Make a new secret", "quiet")}</div>
${secrets(client, path, csrf)}</section>
<section class="panel"><h2>Redirect URIs</h2>
<p class="soft">Where people are sent back to after they allowed your app. One a line; none, if you use client credentials alone.</p>
<form method="post" action="${path}/redirect-uris" class="stack">${csrfField(csrf)}
<div class="field wide"><label for="redirect_uris" class="visually-hidden">Redirect URIs</label>
<textarea id="redirect_uris" name="redirect_uris" spellcheck="false" aria-describedby="uris-hint">${client.redirectUris.join("\n")}</textarea>
<p class="hint" id="uris-hint">https://…, compared exactly; http:// for localhost, 127.0.0.1 and [::1], on any port; or a scheme of your app’s own.</p></div>
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
    { head: "Made", cell: ({ createdAt }) => time(createdAt) },
    { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
    {
      head: "Ends",
      cell: ({ expiresAt }) => (expiresAt === null ? badge("in use", "good") : time(expiresAt)),
    },
    {
      head: "Actions",
      cell: ({ id, last4, expiresAt }) =>
        expiresAt === null
          ? ""
          : formButton({
              action: `${path}/secrets/${id}/delete`,
              csrf,
              text: "End now",
              about: `the secret that ends in ${last4}`,
              look: "danger",
            }),
    },
  ];
  return table("Secrets", columns, secrets);
}

/** Asks how long the old secret is to live. */
export function rotationForm(organizationId: string, csrf: string | undefined): Html {
  const path = sectionPath(organizationId, "client");
  return html`<form method="post" action="${path}/rotate" class="panel stack">${csrfField(csrf)}
<fieldset><legend>Why a new secret?</legend>
<label class="option"><input type="radio" name="kind" value="planned" checked> It is time: the old one lives on for a while</label>
<label class="option"><input type="radio" name="kind" value="compromised"> Somebody else may know it: end every older secret, every token and every app’s access of this client at once</label>
</fieldset>
${field({
  name: "overlap_hours",
  label: "Hours that the old secret lives on",
  type: "number",
  value: 24,
  hint: "0 to 168; a compromised one ends at once, whatever stands here. A third secret ends the oldest.",
  attributes: html`min="0" max="168" step="any"`,
})}
<div class="actions"><button type="submit">Make a new secret</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}
