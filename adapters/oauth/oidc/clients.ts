import type { Adapter, ClientMetadata } from "oidc-provider";
import type { Client } from "../client-row.ts";
import type { ClientStore } from "../clients.ts";

/** RFC 7523 §2.1. */
export const JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/** RFC 8628 §3.4. */
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

// oidc-provider requires a secret in the metadata of a confidential client. The real secrets are stored as hashes and
// compared by a seam. With symmetric algorithms disabled, nothing else reads this placeholder.
export const SECRET_PLACEHOLDER = "kept-as-a-hash";

export function clientAdapter(clients: ClientStore): Partial<Adapter> {
  return {
    async find(clientId) {
      const client = await clients.find(clientId);
      return client && toMetadata(client);
    },
  };
}

/** Returns the metadata of a client (RFC 7591 §2), with the fields of ours. */
export function toMetadata(client: Client): ClientMetadata {
  const { id, organization, redirectUris, generation, secrets, disabled, fapi } = client;
  return {
    client_id: id,
    client_secret: SECRET_PLACEHOLDER,
    client_name: organization.name,
    // `native` allows https everywhere, http on loopback with any port, and private-use schemes (RFC 8252 §7).
    application_type: "native",
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: ["client_credentials", "authorization_code", "refresh_token", JWT_BEARER_GRANT],
    redirect_uris: redirectUris,
    // oidc-provider rejects every request of a client that may use `code` but has no redirect URI.
    response_types: redirectUris.length ? ["code"] : [],
    organization,
    generation,
    secrets,
    disabled,
    fapi,
    ...(fapi && {
      require_pushed_authorization_requests: true,
      dpop_bound_access_tokens: true,
      id_token_signed_response_alg: "ES256",
    }),
  };
}
