import type { Storage } from "../../adapters/index.ts";
import { findApp, identityOf } from "../clients/app-identity.ts";
import { type Html, html } from "../ui/html.ts";

type Created = { createdBy: string | null; createdVia: string | null };

/** Renders who created a link or webhook: “by ada via Acme”. A user who has left is shown by their ID. */
export async function creatorOf(
  { clients, members }: Pick<Storage, "clients" | "members">,
  organizationId: string,
  { createdBy, createdVia }: Created,
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
