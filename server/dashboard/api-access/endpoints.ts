import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";

/** The endpoints that the client of an organization uses. */
export type Endpoints = ReturnType<typeof endpointsOf>;

/** Returns the endpoint URLs under the names of RFC 8414, plus those of the API and MCP. */
export function endpointsOf({ base, api, mcp }: PublicUrls) {
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
