import type { ClientStore } from "../clients.ts";
import type { ModelAdapter } from "./model.ts";

// The library wants a secret in the metadata of a confidential client. The real ones are kept as hashes, compared by
// an override of ours; with symmetric algorithms disabled, nothing else ever reads this.
const SECRET_ELSEWHERE = "kept-as-a-hash";

/**
 * Clients as RFC 7591 metadata. The text is the same for the same state, because the library keys its cache of
 * parsed clients by it; a rotation, a new plan or new redirect URIs make it another one.
 */
export function clientAdapter(clients: ClientStore): ModelAdapter {
  return {
    async find(clientId) {
      const client = await clients.find(clientId);
      if (!client) return undefined;
      return {
        client_id: client.id,
        client_secret: SECRET_ELSEWHERE,
        client_name: client.organization.name,
        // `native`: https anywhere, http on loopback only with any port, private-use schemes (RFC 8252 §7).
        application_type: "native",
        token_endpoint_auth_method: "client_secret_basic",
        grant_types: ["client_credentials", "authorization_code", "refresh_token"],
        redirect_uris: client.redirectUris,
        // Without a redirect URI the library refuses a client that may use `code` on every call, not only there.
        response_types: client.redirectUris.length ? ["code"] : [],
        organization: client.organization,
        generation: client.generation,
        secrets: client.secrets,
      };
    },
  };
}
