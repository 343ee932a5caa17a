import { timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type Client, type ClientMetadata, Provider } from "oidc-provider";
import { sha256 } from "../../../adapters/crypto/ids.ts";
import { type ClientKind, clientKindOf } from "../../../adapters/oauth/app-policy.ts";
import type { Client as StoredClient } from "../../../adapters/oauth/client-row.ts";
import type { ClientStore } from "../../../adapters/oauth/clients.ts";
import { toMetadata } from "../../../adapters/oauth/oidc/clients.ts";
import { isClientId, isFapi, RESOURCE_SERVER, secretsOf } from "../../clients/client-metadata.ts";
import { canonicalRedirectUri } from "../../clients/redirect-uris.ts";
import type { RegisteredClientIds } from "../../clients/registered-client-id.ts";
import { createRegisteredClients } from "../../clients/registered-clients.ts";
import { createSecretUseRecorder } from "../../clients/use-recorder.ts";
import { refuseSecret } from "../fapi.ts";
import { requireUsableToIssue } from "../require-api-access.ts";

/**
 * Seam: clients are found in the database and in their ids.
 * No option: with an adapter, oidc-provider hashes the metadata in each request, and caches the objects of a hundred
 * clients. Constructing one takes ten times as long as the read.
 * Upstream would have to offer: a cache by a version that the adapter returns, of a configurable size.
 */

// A client object takes a few kilobytes.
const MAX_CACHED_CLIENTS = 10_000;

type ClientConstructor = new (metadata: ClientMetadata) => Client;

/**
 * Replaces the lookup of clients. Those of organizations are read in every request, so a change takes effect
 * immediately; only their construction is cached, by version.
 */
export function findStoredClients(
  { Client }: Provider,
  clients: ClientStore,
  registeredIds: RegisteredClientIds | undefined,
): void {
  // Finds static clients and those with a metadata document; only clients of organizations are stored.
  const findUnstored = Client.find.bind(Client);
  const ClientClass = Client as unknown as ClientConstructor;
  const construct = createClientCache(ClientClass);
  const findRegistered = registeredIds && createRegisteredClients(ClientClass, registeredIds);

  const findByKind: Record<ClientKind, (id: string) => Promise<Client | undefined> | Client | undefined> = {
    async organization(id) {
      const stored = await clients.find(id);
      return stored && construct(stored);
    },
    registered: (id) => findRegistered?.(id, Provider.ctx?.oidc.route),
    document: findUnstored,
    service: findUnstored,
  };

  Object.assign(Client, {
    async find(id: unknown): Promise<Client | undefined> {
      // Other ids are not looked up: some databases reject a NUL, others ignore trailing spaces.
      return typeof id === "string" && isClientId(id) ? findByKind[clientKindOf(id)](id) : undefined;
    },
  });
}

/** Returns a function that constructs the client object of a stored client, once per version. */
function createClientCache(ClientClass: ClientConstructor) {
  const cache = new LRUCache<string, { version: string; client: Client }>({ max: MAX_CACHED_CLIENTS });
  return (stored: StoredClient): Client => {
    const { id, version } = stored;
    const cached = cache.get(id);
    if (cached?.version === version) return cached.client;
    const redirectUris = stored.redirectUris.map(canonicalRedirectUri);
    const client = new ClientClass(toMetadata({ ...stored, redirectUris }));
    cache.set(id, { version, client });
    return client;
  };
}

/**
 * Seam: client secrets are compared with hashes, of which a client may have two; then the client must be usable.
 * No option: oidc-provider stores one secret of a client as text. Its maintainer recommends to override this method.
 * Upstream would have to offer: an option that compares secrets.
 */
export function compareHashedSecrets(provider: Provider, clients: ClientStore): void {
  const recordUse = createSecretUseRecorder(clients, (error) => provider.emit("error", error));

  Object.assign(provider.Client.prototype, {
    async compareClientSecret(this: Client, secret: string): Promise<boolean> {
      const { ctx } = Provider;
      if (isFapi(this)) refuseSecret();
      const secretId = findActiveSecret(this, secret);
      if (!secretId) return false;
      if (secretId !== RESOURCE_SERVER && ctx) recordUse(secretId, ctx);
      requireUsableToIssue(ctx, this);
      return true;
    },
  });
}

/** Returns the id of the client's active secret with this value, compared in constant time. */
function findActiveSecret(client: Client, value: string): string | undefined {
  const given = Buffer.from(sha256(value));
  const now = Date.now();
  // Compares all of them: the time must not depend on which one matches.
  const matching = secretsOf(client).filter(
    ({ hash, expiresAt }) =>
      timingSafeEqual(Buffer.from(hash), given) && (expiresAt === null || expiresAt > now),
  );
  return matching[0]?.id;
}
