import type { Client, ClientMetadata } from "oidc-provider";
import type { Client as StoredClient } from "../../adapters/client-row.ts";
import { sha256 } from "../../adapters/hash.ts";
import type { Settings } from "../config.ts";

/** The public client behind first-party tokens. */
export const DASHBOARD = "dashboard";
/** The client of resources that are served apart: it may ask about every token. */
export const RESOURCE_SERVER = "resource-server";

/** What our storage adds to the metadata of a client. */
export const EXTRA_METADATA = ["organization", "generation", "secrets"];

const NO_FLOW = { redirect_uris: [], response_types: [] };

/** Clients that belong to the service itself. */
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
    client_secret: "kept-as-a-hash",
    token_endpoint_auth_method: "client_secret_basic",
    grant_types: [],
    secrets: [{ id: RESOURCE_SERVER, hash: sha256(RESOURCE_SERVER_SECRET), expiresAt: null }],
  };
  return [dashboard, resourceServer];
}

/** The organization that a client belongs to; none for the service's own and for those known by a document. */
export function organizationOf(client: Client): StoredClient["organization"] | undefined {
  return client.organization as StoredClient["organization"] | undefined;
}

/** The live secrets of a client, as hashes. */
export function secretsOf(client: Client): StoredClient["secrets"] {
  return (client.secrets as StoredClient["secrets"] | undefined) ?? [];
}
