import type { Client, ClientMetadata } from "oidc-provider";
import { sha256 } from "../../adapters/crypto/ids.ts";
import type { Client as StoredClient } from "../../adapters/oauth/client-row.ts";
import { SECRET_PLACEHOLDER } from "../../adapters/oauth/oidc/clients.ts";
import type { Settings } from "../settings/config.ts";

export const DASHBOARD = "dashboard";
/** The client of resources that run as a separate service: it may introspect every access token. */
export const RESOURCE_SERVER = "resource-server";

/** Fields that our storage adds to the metadata of a client. */
export const EXTRA_METADATA = ["organization", "generation", "secrets", "disabled", "fapi"];

// Covers generated and registered ids, and URLs of metadata documents. RFC 6749 appendix A.1 would also allow spaces.
const CLIENT_ID = /^[\x21-\x7e]{1,255}$/;

const NO_FLOW = { redirect_uris: [], response_types: [] };

export function staticClients({ RESOURCE_SERVER_SECRET }: Settings): ClientMetadata[] {
  const dashboard: ClientMetadata = {
    ...NO_FLOW,
    client_id: DASHBOARD,
    token_endpoint_auth_method: "none",
    grant_types: ["refresh_token"],
  };
  if (!RESOURCE_SERVER_SECRET) return [dashboard];
  const resourceServer: ClientMetadata = {
    ...NO_FLOW,
    client_id: RESOURCE_SERVER,
    client_secret: SECRET_PLACEHOLDER,
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: [],
    secrets: [{ id: RESOURCE_SERVER, hash: sha256(RESOURCE_SERVER_SECRET), expiresAt: null }],
  };
  return [dashboard, resourceServer];
}

/** Returns whether an id is short enough to be stored with grants and tokens, and ASCII without spaces. */
export function isClientId(id: string): boolean {
  return CLIENT_ID.test(id);
}

/** Returns the organization of a client. The service's own clients and those with a metadata document have none. */
export function organizationOf(client: Client): StoredClient["organization"] | undefined {
  return client.organization as StoredClient["organization"] | undefined;
}

/** Returns whether a client follows the FAPI 2.0 Security Profile. */
export function isFapi(client: Client | undefined): boolean {
  return client?.fapi === true;
}

/** Returns the hashes of a client's secrets. */
export function secretsOf(client: Client): StoredClient["secrets"] {
  return (client.secrets as StoredClient["secrets"] | undefined) ?? [];
}
