import { type Adapter, type Configuration, errors, Provider } from "oidc-provider";

const RESOURCE = "http://localhost/api";
const SCOPES = "links:read links:write webhooks:read webhooks:write";

/** Creates a plain oidc-provider with one client, as an application would configure it. */
export function createProvider(adapter?: new (name: string) => Adapter): Provider {
  const { CLIENT_ID: client_id = "", CLIENT_SECRET: client_secret = "" } = process.env;
  const configuration: Configuration = {
    ...(adapter && { adapter }),
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
  return new Provider("http://localhost", configuration);
}
