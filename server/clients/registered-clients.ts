import { LRUCache } from "lru-cache";
import { type Client, type ClientMetadata, errors } from "oidc-provider";
import { canonicalRedirectUri } from "./redirect-uris.ts";
import type { RegisteredClientIds } from "./registered-client-id.ts";

// Anyone can create ids, so they have a cache of their own: they can't evict the clients of organizations.
const MAX_CACHED_CLIENTS = 1000;

// They issue nothing, and access tokens that were issued before are valid until they expire.
const ROUTES_WITHOUT_EXPIRY = new Set<string | undefined>(["introspection", "revocation", "userinfo"]);

export const REGISTERED_CLIENT = {
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  // `native` allows https everywhere, http on loopback with any port, and private-use schemes (RFC 8252 §7).
  application_type: "native",
} as const;

/** Returns undefined for an id that this service has not issued. Throws ExpiredRegistration for an expired one. */
export function createRegisteredClients(
  ClientClass: new (metadata: ClientMetadata) => Client,
  ids: RegisteredClientIds,
): (clientId: string, route: string | undefined) => Client | undefined {
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

  return (clientId, route) => {
    const found = cache.get(clientId) ?? construct(clientId);
    const hasExpired = found && found.expiresAt <= Date.now();
    if (hasExpired && !ROUTES_WITHOUT_EXPIRY.has(route)) throw new ExpiredRegistration();
    return found?.client;
  };
}

/** The error `invalid_client` makes clients register again. */
export class ExpiredRegistration extends errors.InvalidClient {
  constructor() {
    super("the registration of the client has expired");
  }
}
