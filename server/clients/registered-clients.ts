import { LRUCache } from "lru-cache";
import { type Client, type ClientMetadata, errors, Provider } from "oidc-provider";
import { canonicalRedirectUri } from "./redirect-uris.ts";
import type { RegisteredClientIds } from "./registered-client-id.ts";
import { REGISTERED_CLIENT } from "./registration-request.ts";

// Anyone can create ids, so they have a cache of their own: they can't evict the clients of organizations.
const MAX_CACHED_CLIENTS = 1000;

// They issue nothing, and access tokens that were issued before are valid until they expire.
const ROUTES_WITHOUT_EXPIRY = new Set<string | undefined>(["introspection", "revocation", "userinfo"]);

/**
 * Returns a function that constructs the client object of a registered id, or returns undefined for an id that this
 * service has not issued. It throws ExpiredRegistration for an expired one.
 */
export function createRegisteredClients(
  ClientClass: new (metadata: ClientMetadata) => Client,
  ids: RegisteredClientIds,
): (clientId: string) => Client | undefined {
  const cache = new LRUCache<string, { client: Client; expiresAt: number }>({ max: MAX_CACHED_CLIENTS });

  function construct(clientId: string) {
    const registration = ids.verify(clientId);
    if (!registration) return undefined;
    const { name, redirectUris, expiresAt } = registration;
    const metadata = {
      ...structuredClone(REGISTERED_CLIENT),
      client_id: clientId,
      redirect_uris: redirectUris.map(canonicalRedirectUri),
      ...(name && { client_name: name }),
    };
    const constructed = { client: new ClientClass(metadata as ClientMetadata), expiresAt };
    cache.set(clientId, constructed);
    return constructed;
  }

  return (clientId) => {
    const found = cache.get(clientId) ?? construct(clientId);
    if (found && found.expiresAt <= Date.now() && !mayBeExpired()) throw new ExpiredRegistration();
    return found?.client;
  };
}

/** The registration of a client has expired. The error `invalid_client` makes clients register again. */
export class ExpiredRegistration extends errors.InvalidClient {
  constructor() {
    super("the registration of the client has expired");
  }
}

/** Returns whether the current request only describes or ends access. */
function mayBeExpired(): boolean {
  return ROUTES_WITHOUT_EXPIRY.has(Provider.ctx?.oidc.route);
}
