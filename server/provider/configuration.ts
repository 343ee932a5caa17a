import type { AdapterFactory, Configuration, FindAccount, KoaContextWithOIDC } from "oidc-provider";
import { DPOP_ALGS } from "../../resources/access/dpop-proof.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { GuardedFetch } from "../../resources/outbound/guarded-fetch.ts";
import { SIGNING_ALGORITHMS } from "../assertions/verify-jwt.ts";
import { EXTRA_METADATA, staticClients } from "../clients/client-metadata.ts";
import { clientIdMetadataDocuments } from "../clients/client-metadata-documents.ts";
import { createFetchDocument } from "../clients/fetch-document.ts";
import type { Settings } from "../config.ts";
import type { Keys } from "../keys/shared-keys.ts";
import { ABSOLUTE_LIFETIME, ACCESS_TOKEN_LIFETIME, ID_TOKEN_LIFETIME } from "../lifetimes.ts";
import { cookies } from "./cookies.ts";
import { dPoP } from "./dpop.ts";
import { prompts, type RememberedGrant } from "./interaction-policy.ts";
import { mayIntrospect } from "./introspection.ts";
import { issueRefreshToken, refreshTokenLifetime, rotateRefreshToken } from "./refresh-tokens.ts";
import { resourceIndicators } from "./resource-indicators.ts";
import { mayRevoke, revokeGrantPolicy } from "./revocation.ts";
import { sessionLifetime } from "./sessions.ts";

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export type ProviderOptions = {
  settings: Settings;
  urls: PublicUrls;
  keys: Keys;
  adapter: AdapterFactory;
  findAccount: FindAccount;
  /** Returns the grant that an authorization request gets without asking the user again, before it is stored. */
  findRememberedGrant: (ctx: KoaContextWithOIDC) => Promise<RememberedGrant | undefined>;
  origins: ReadonlySet<string>;
  fetch: GuardedFetch;
  /** Renders an error of the authorization endpoint that must not be sent to the client. */
  renderError: NonNullable<Configuration["renderError"]>;
};

/** Returns the configuration of oidc-provider, which replaces every default that doesn't suit this service. */
export function configuration(options: ProviderOptions): Configuration {
  const { settings, urls, keys, adapter, findAccount, origins, fetch, renderError } = options;
  return {
    adapter,
    fetch: createFetchDocument(settings.CIMD, fetch),
    findAccount,
    renderError,
    routes,
    discovery: {
      service_documentation: `${urls.base}/docs`,
      protected_resources: [urls.base, urls.api, urls.mcp], // RFC 9728 §4
    },
    cookies: cookies(urls, keys),
    clientBasedCORS: (_ctx, origin) => origins.has(origin),
    ...clientOptions(settings),
    ...authorizationOptions(options),
    ...tokenOptions(keys),
    features: features(options),
  };
}

const routes: Configuration["routes"] = {
  authorization: "/oauth/authorize",
  token: "/oauth/token",
  revocation: "/oauth/revoke",
  introspection: "/oauth/introspect",
  pushed_authorization_request: "/oauth/par",
  userinfo: "/oauth/userinfo",
  jwks: "/oauth/jwks",
  end_session: "/oauth/session/end",
};

function clientOptions(settings: Settings): Configuration {
  return {
    clients: staticClients(settings),
    clientDefaults: {
      id_token_signed_response_alg: "RS256",
      response_modes: ["query"],
      // Metadata documents of agents omit these; clients of organizations state theirs.
      ...(settings.CIMD !== "off" && { application_type: "native", token_endpoint_auth_method: "none" }),
    },
    extraClientMetadata: { properties: EXTRA_METADATA },
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"],
    allowOmittingSingleRegisteredRedirectUri: true,
  };
}

function authorizationOptions({ findRememberedGrant }: ProviderOptions): Configuration {
  return {
    responseTypes: ["code"],
    pkce: { required: () => true }, // RFC 9700 §2.1.1: for every client
    scopes: ["openid", "offline_access"],
    claims: { openid: ["sub", "preferred_username", "organization_id", "auth_time", "amr"] },
    conformIdTokenClaims: false, // the id_token carries the claims, which saves a request
    interactions: {
      policy: prompts(),
      url: (_ctx, interaction) => `/interaction/${interaction.uid}`,
    },
    loadExistingGrant: async (ctx) => {
      const { provider, result } = ctx.oidc;
      const grantId = result?.consent?.grantId;
      return grantId ? provider.Grant.find(grantId) : findRememberedGrant(ctx);
    },
    expiresWithSession: async () => false,
  };
}

function tokenOptions({ jwks }: Keys): Configuration {
  return {
    jwks,
    acceptQueryParamAccessTokens: false,
    clockTolerance: 0,
    formats: { bitsOfOpaqueRandomness: 256 },
    enabledJWA: {
      idTokenSigningAlgValues: ["RS256"],
      clientAuthSigningAlgValues: SIGNING_ALGORITHMS,
      dPoPSigningAlgValues: DPOP_ALGS,
    },
    issueRefreshToken,
    rotateRefreshToken,
    revokeGrantPolicy,
    ttl: {
      AuthorizationCode: MINUTE,
      AccessToken: ACCESS_TOKEN_LIFETIME,
      ClientCredentials: (_ctx, token) => token.resourceServer?.accessTokenTTL ?? HOUR,
      IdToken: ID_TOKEN_LIFETIME,
      Interaction: 15 * MINUTE,
      Session: (_ctx, session) => sessionLifetime(session),
      Grant: ABSOLUTE_LIFETIME + ACCESS_TOKEN_LIFETIME, // outlives its last access token
      RefreshToken: refreshTokenLifetime,
    },
  };
}

function features({ settings, urls, keys, findAccount }: ProviderOptions): Configuration["features"] {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: true },
    rpInitiatedLogout: { enabled: false },
    dPoP: dPoP(keys),
    clientCredentials: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
    resourceIndicators: resourceIndicators(urls),
    introspection: { enabled: true, allowedPolicy: mayIntrospect(findAccount) },
    revocation: { enabled: true, allowedPolicy: mayRevoke },
    ...clientIdMetadataDocuments(settings),
  };
}
