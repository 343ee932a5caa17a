import { type Client, type ClientMetadata, errors } from "oidc-provider";
import { DEVICE_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import { canonicalRedirectUri } from "./redirect-uris.ts";
import type { RegisteredClientIds } from "./registered-client-id.ts";

// They issue nothing, and access tokens that were issued before are valid until they expire.
const ROUTES_WITHOUT_EXPIRY = new Set<string | undefined>(["introspection", "revocation", "userinfo"]);

export const REGISTERED_CLIENT = {
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code", "refresh_token", DEVICE_GRANT],
  response_types: ["code"],
  // `native` allows https everywhere, http on loopback with any port, and private-use schemes (RFC 8252 §7).
  application_type: "native",
} as const;

/** Returns undefined for an id that this service has not issued. Throws ExpiredRegistration for an expired one. */
export function createRegisteredClients(
  ClientClass: new (metadata: ClientMetadata) => Client,
  ids: RegisteredClientIds,
): (clientId: string, route: string | undefined) => Client | undefined {
  return (clientId, route) => {
    const registration = ids.verify(clientId);
    if (!registration) return undefined;
    const { name, redirectUris, expiresAt } = registration;
    if (expiresAt <= Date.now() && !ROUTES_WITHOUT_EXPIRY.has(route)) throw new ExpiredRegistration();
    return new ClientClass({
      ...structuredClone(REGISTERED_CLIENT),
      client_id: clientId,
      redirect_uris: redirectUris.map(canonicalRedirectUri),
      ...(name && { client_name: name }),
    } as ClientMetadata);
  };
}

/** The error `invalid_client` makes clients register again. */
export class ExpiredRegistration extends errors.InvalidClient {
  constructor() {
    super("the registration of the client has expired");
  }
}
