import type { ClientMetadata } from "oidc-provider";
import type { Client } from "../client-row.ts";
import type { ClientStore } from "../clients.ts";
import type { ModelAdapter } from "./model.ts";

// The library wants a secret in the metadata of a confidential client. The real ones are kept as hashes, compared by
// an override of ours; with symmetric algorithms disabled, nothing else ever reads this.
const SECRET_ELSEWHERE = "kept-as-a-hash";

/** Clients as RFC 7591 metadata. */
export function clientAdapter(clients: ClientStore): ModelAdapter {
  return {
    async find(clientId) {
      const client = await clients.find(clientId);
      return client && toMetadata(client);
    },
  };
}

/** What the library is told about a client. */
export function toMetadata({ id, organization, redirectUris, generation, secrets }: Client): ClientMetadata {
  return {
    client_id: id,
    client_secret: SECRET_ELSEWHERE,
    client_name: organization.name,
    // `native`: https anywhere, http on loopback only with any port, private-use schemes (RFC 8252 §7).
    application_type: "native",
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: ["client_credentials", "authorization_code", "refresh_token"],
    redirect_uris: redirectUris,
    // Without a redirect URI the library refuses a client that may use `code` on every call, not only there.
    response_types: redirectUris.length ? ["code"] : [],
    organization,
    generation,
    secrets,
  };
}
