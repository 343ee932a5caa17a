import type { ClientMetadata } from "oidc-provider";
import type { Client } from "../client-row.ts";
import type { ClientStore } from "../clients.ts";
import type { ModelAdapter } from "./model.ts";

// The library requires a secret in the metadata of a confidential client. The real secrets are stored as hashes and
// compared by an override. With symmetric algorithms disabled, nothing else reads this placeholder.
const SECRET_PLACEHOLDER = "kept-as-a-hash";

/** Returns clients as RFC 7591 metadata. */
export function clientAdapter(clients: ClientStore): ModelAdapter {
  return {
    async find(clientId) {
      const client = await clients.find(clientId);
      return client && toMetadata(client);
    },
  };
}

/** Converts a client to the metadata that the library reads. */
export function toMetadata({
  id,
  organization,
  redirectUris,
  generation,
  secrets,
  disabled,
}: Client): ClientMetadata {
  return {
    client_id: id,
    client_secret: SECRET_PLACEHOLDER,
    client_name: organization.name,
    // `native` allows https everywhere, http on loopback with any port, and private-use schemes (RFC 8252 §7).
    application_type: "native",
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: [
      "client_credentials",
      "authorization_code",
      "refresh_token",
      "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ],
    redirect_uris: redirectUris,
    // The library rejects every request of a client that may use `code` but has no redirect URI.
    response_types: redirectUris.length ? ["code"] : [],
    organization,
    generation,
    secrets,
    disabled,
  };
}
