import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Configuration, errors, Provider } from "oidc-provider";

// The reference for the engine: plain oidc-provider with its memory adapter. Nothing is stored.
const { CLIENT_ID: client_id = "", CLIENT_SECRET: client_secret = "" } = process.env;
const RESOURCE = "http://localhost/api";
const SCOPES = "links:read links:write webhooks:read webhooks:write";

const configuration: Configuration = {
  clients: [
    {
      client_id,
      client_secret,
      grant_types: ["client_credentials", "authorization_code", "refresh_token"],
      redirect_uris: ["https://app.example.com/callback"],
      response_types: ["code"],
    },
  ],
  routes: { token: "/oauth/token", introspection: "/oauth/introspect" },
  findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  issueRefreshToken: async () => true,
  expiresWithSession: async () => false,
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: async () => RESOURCE,
      useGrantedResource: async () => true,
      getResourceServerInfo: async (_ctx, resource) => {
        if (resource !== RESOURCE) throw new errors.InvalidTarget();
        return { scope: SCOPES, audience: RESOURCE, accessTokenFormat: "opaque", accessTokenTTL: 3600 };
      },
    },
  },
};

const provider = new Provider("http://localhost", configuration);
const server = createServer(provider.callback()).listen(0, "127.0.0.1");
await once(server, "listening");
console.log(`listening on ${(server.address() as AddressInfo).port}`);
process.on("SIGTERM", () => process.exit(0));
