import type { Membership } from "../../../adapters/organizations/store.ts";
import { prose } from "../../docs/prose.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Guide } from "./guides.ts";
import { stepList } from "./steps.ts";

/** Renders the steps that connect a host, or why it can't connect and what to do instead. */
export function guidePanel(guide: Guide, membership: Membership, username: string): Html {
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
