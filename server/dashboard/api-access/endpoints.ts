import type { Addresses } from "../../resources/metadata.ts";

/** Where a client of an organization goes. */
export type Endpoints = ReturnType<typeof endpointsOf>;

/** The addresses, as their standards name them. */
export function endpointsOf({ base, api, mcp }: Addresses) {
  return {
    issuer: base,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    revocation_endpoint: `${base}/oauth/revoke`,
    introspection_endpoint: `${base}/oauth/introspect`,
    api,
    mcp,
  };
}
