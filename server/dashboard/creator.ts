import type { Storage } from "../../adapters/index.ts";
import { findApp, identityOf } from "../clients/app-identity.ts";
import { breakable } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { capitalized } from "../ui/text.ts";

/** Renders who created a link or webhook: “by ada via Acme”. A user who has left is shown by their ID. */
export async function creatorOf(
  { clients, members }: Pick<Storage, "clients" | "members">,
  organizationId: string,
  { createdBy, createdVia }: { createdBy: string | null; createdVia: string | null },
): Promise<Html> {
  if (createdBy === null) return html``;
  const [listed, creatingApp, ownClient] = await Promise.all([
    members.list(organizationId),
    createdVia === null ? undefined : nameOf(clients, createdVia),
    nameOf(clients, createdBy),
  ]);
  const user = listed.find(({ id }) => id === createdBy)?.username ?? (ownClient && `${ownClient} (client)`);
  return html`by ${user === undefined ? html`<code>${createdBy}</code>` : html`<bdi>${user}</bdi>`}${
    createdVia !== null && html` via <bdi>${creatingApp ?? createdVia}</bdi>`
  }`;
}

/** Returns the name of an app whose ID was verified when it was used. */
async function nameOf(clients: Storage["clients"], clientId: string): Promise<string | undefined> {
  return identityOf(clientId)?.name ?? (await findApp(clientId, clients))?.name;
}

/** Takes the host of each webhook, its `creator` as within a sentence, and the `user` for whom an app created it. */
export function webhookChoice(hosts: string[], creator: Html | string, user?: Html | string): Html {
  if (hosts.length === 0) return html``;
  const isOne = hosts.length === 1;
  const counts = [...Map.groupBy(hosts.toSorted(), (host) => host)];
  const forUser = user ? html` for ${user}` : html``;
  return html`<fieldset><legend>Webhooks</legend>
<p>${typeof creator === "string" ? capitalized(creator) : creator} created ${isOne ? "1 webhook" : `${hosts.length} webhooks`}${forUser}, which ${isOne ? "stays unless you delete it" : "stay unless you delete them"}:</p>
<ul>${counts.map(([host, { length }]) => html`<li>${breakable(host)}${length > 1 ? ` (${length})` : ""}</li>`)}</ul>
<label class="option"><input type="checkbox" name="delete_webhooks" value="true" aria-describedby="delete_webhooks-hint"><span>Also delete all webhooks that ${creator} created${forUser} (${hosts.length} now)</span></label>
<p class="hint" id="delete_webhooks-hint">This also deletes their signing secrets and delivery logs. You can’t undo it.</p>
</fieldset>`;
}
