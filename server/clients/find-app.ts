import { clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { isPublicUrl } from "../../resources/outbound/public-url.ts";
import type { AppIdentity } from "./app-identity.ts";
import { identityOf } from "./client-identity.ts";
import type { RegisteredClientIds } from "./registered-client-id.ts";

// The length of the database column.
const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

/**
 * Finds out what identifies the client with an id. Resolves to undefined for an id that no app can have.
 * @param registeredIds absent where clients can't register
 */
export async function findApp(
  clientId: string,
  clients: ClientStore,
  registeredIds?: Pick<RegisteredClientIds, "verify">,
): Promise<AppIdentity | undefined> {
  if (!CLIENT_ID.test(clientId)) return undefined;
  switch (clientKindOf(clientId)) {
    case "organization": {
      const client = await clients.find(clientId);
      return client && { name: client.organization.name, publisher: null };
    }
    case "document":
      return isPublicUrl(clientId) ? identityOf(clientId) : undefined;
    case "registered":
      return registeredIds?.verify(clientId) && identityOf(clientId);
    default:
      return undefined;
  }
}
