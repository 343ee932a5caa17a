import type { ClientView } from "../../../adapters/oauth/clients.ts";
import { badge, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, table } from "../../ui/table.ts";

/** Renders the secrets of a client. */
export function secretsSection(client: ClientView, path: string, csrf: string | undefined): Html {
  if (client.secrets.length === 0) {
    return html`<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">This client has no secret.</p></div>
${linkButton(`${path}/rotate`, "Create secret", "quiet")}</div></section>`;
  }
  return html`<section class="group"><div class="title"><div><h2>Secrets</h2>
<p class="intro">Shows the last four characters of each secret and its callers in the last 30 days. Tokens stay valid after a secret expires.</p></div>
<div class="actions">${linkButton(`${path}/rotate`, "Rotate secret", "quiet")}${linkButton(`${path}/secrets/remove`, "Remove all", "quiet")}</div></div>
${overlapNotice(client)}${secretsTable(client, path, csrf)}</section>`;
}

/** Renders whether the previous secret is still in use, during the overlap of a rotation. */
function overlapNotice({ secrets }: ClientView): Html {
  const [newest, previous] = secrets;
  if (!newest || !previous || newest.expiresAt !== null) return html``;
  const [latest] = previous.callers;
  const isUsed = previous.lastUsedAt !== null && previous.lastUsedAt > newest.createdAt;
  if (!isUsed)
    return html`<p class="notice">The previous secret, ending in <code>${previous.last4}</code>, hasn’t been used since the rotation. You can revoke it.</p>`;
  const caller = latest ? html`, by ${latest.program} from ${latest.network}` : html``;
  return html`<p class="alert">The previous secret, ending in <code>${previous.last4}</code>, is still in use (${time(previous.lastUsedAt)}${caller}). Update its callers to the new secret before it expires.</p>`;
}

/** Renders who used a secret in the last 30 days. */
function callersOf({ callers }: Secret): Html {
  const [first, ...others] = callers;
  if (!first) return html`<span class="soft">–</span>`;
  const line = ({ program, network }: Secret["callers"][number]) =>
    html`${program} <span class="soft">${network}</span>`;
  if (others.length === 0) return line(first);
  return html`<details><summary>${line(first)} and ${others.length} more</summary>
<ul>${others.map((caller) => html`<li>${line(caller)}, ${time(caller.lastUsedAt)}</li>`)}</ul></details>`;
}

type Secret = ClientView["secrets"][number];

function secretsTable({ secrets }: ClientView, path: string, csrf: string | undefined): Html {
  const columns: Column<Secret>[] = [
    { head: "Secret", cell: ({ last4 }) => html`<code>…${last4}</code>` },
    { head: "Created", cell: ({ createdAt }) => time(createdAt) },
    { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
    { head: "Used by", cell: callersOf },
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

type Key = ClientView["keys"][number];

/** Renders the public keys of a client. */
export function keysSection({ keys }: ClientView, path: string): Html {
  const columns: Column<Key>[] = [
    { head: "Thumbprint", cell: ({ thumbprint }) => html`<code class="long">${thumbprint}</code>` },
    { head: "Created", cell: ({ createdAt }) => time(createdAt) },
    { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
    {
      head: "Actions",
      cell: ({ id, thumbprint }) =>
        html`<a class="button danger" href="${path}/keys/${id}/remove">Remove<span class="visually-hidden"> key ${thumbprint}</span></a>`,
    },
  ];
  return html`<section class="group"><div class="title"><div><h2>Public keys</h2>
<p class="intro">Sign requests with a private key instead of sending a secret (<code>private_key_jwt</code>). Up to two keys.</p></div>
${keys.length < 2 ? linkButton(`${path}/keys/new`, "Add public key", "quiet") : html``}</div>
${keys.length > 0 ? table("Public keys", columns, keys) : html``}</section>`;
}
