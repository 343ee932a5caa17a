import { LRUCache } from "lru-cache";
import type { Client, ClientMetadata, Provider } from "oidc-provider";
import { type ClientKind, clientKindOf } from "../../adapters/oauth/client-kinds.ts";
import type { Client as StoredClient } from "../../adapters/oauth/client-row.ts";
import type { ClientStore } from "../../adapters/oauth/clients.ts";
import { toMetadata } from "../../adapters/oauth/oidc/clients.ts";
import type { RegisteredClientIds } from "../clients/registered-client-id.ts";
import { createRegisteredClients } from "../clients/registered-clients.ts";
import type { ClientAssertions } from "./client-assertions.ts";

// A client object takes a few kilobytes.
const MAX_CACHED_CLIENTS = 10_000;

// Covers generated and registered ids, and URLs of metadata documents. RFC 6749 appendix A.1 would also allow spaces.
const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

/**
 * Replaces the library's client lookup. Clients of organizations are read from the database in every request, so a
 * change takes effect immediately; only their construction, which takes ten times as long as the read, is cached by
 * version. The library's own cache holds a hundred clients and computes a hash for each request.
 */
export function overrideFindClient(
  { Client }: Provider,
  clients: ClientStore,
  assertions: ClientAssertions,
  registeredIds: RegisteredClientIds | undefined,
): void {
  // Finds static clients and those with a metadata document; only clients of organizations are stored.
  const findUnstored = Client.find.bind(Client);
  const ClientClass = Client as unknown as ClientConstructor;
  const construct = createClientCache(ClientClass);
  const findRegistered = registeredIds && createRegisteredClients(ClientClass, registeredIds);

  async function findStored(id: string): Promise<Client | undefined> {
    const stored = await clients.find(id);
    return stored && construct(stored);
  }

  const findByKind: Record<ClientKind, (id: string) => Promise<Client | undefined> | Client | undefined> = {
    organization: findStored,
    registered: (id) => findRegistered?.(id),
    document: findUnstored,
    service: findUnstored,
  };

  Object.assign(Client, {
    async find(id: unknown): Promise<Client | undefined> {
      // Other ids are not looked up: some databases reject a NUL, others ignore trailing spaces.
      if (typeof id !== "string" || !isClientId(id)) return undefined;
      const client = await findByKind[clientKindOf(id)](id);
      // The library authenticates the client right after it was found.
      if (client) await assertions.authenticate(client);
      else assertions.refuseUnknown(id);
      return client;
    },
  });
}

/** Returns whether an id is short enough to be stored with grants and tokens, and ASCII without spaces. */
export function isClientId(id: string): boolean {
  return CLIENT_ID.test(id);
}

type ClientConstructor = new (metadata: ClientMetadata) => Client;

/** Returns a function that constructs the client object of a stored client, once per version. */
function createClientCache(ClientClass: ClientConstructor) {
  const cache = new LRUCache<string, { version: string; client: Client }>({ max: MAX_CACHED_CLIENTS });
  return (stored: StoredClient): Client => {
    const { id, version } = stored;
    const cached = cache.get(id);
    if (cached?.version === version) return cached.client;
    const client = new ClientClass(toMetadata(stored));
    cache.set(id, { version, client });
    return client;
  };
}
