import {
  type Configuration,
  type FindAccount,
  type Grant,
  type KoaContextWithOIDC,
  Provider,
  type RefreshToken,
} from "oidc-provider";
import type { Storage } from "../../adapters/index.ts";
import { DPOP_ALGS } from "../../resources/access/dpop.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import { SIGNING_ALGORITHMS } from "../assertions/verify-jwt.ts";
import { EXTRA_METADATA, staticClients } from "../clients/client-metadata.ts";
import { clientIdMetadataDocuments, createFetchDocument } from "../clients/metadata-documents.ts";
import type { Dependencies } from "../dependencies.ts";
import { networkKeyOf } from "../http/client-ip.ts";
import { cookieOptions, sessionCookieOf } from "../http/cookies.ts";
import type { Keys } from "../keys/shared-keys.ts";
import { ENDPOINT_LIST } from "../oauth-endpoints.ts";
import type { Settings } from "../settings/config.ts";
import {
  ABSOLUTE_LIFETIME,
  ACCESS_TOKEN_LIFETIME,
  GRANT_LIFETIME,
  ID_TOKEN_LIFETIME,
} from "../settings/token-lifetimes.ts";
import { dPoP } from "./dpop.ts";
import { createFindAccount } from "./find-account.ts";
import { isPromptedBeforeConsent, prompts } from "./interaction-policy.ts";
import { mayIntrospect } from "./introspection.ts";
import { checkSize } from "./request-parameters.ts";
import { clientCredentialsLifetime, resourceIndicators, useWorkloadToken } from "./resource-indicators.ts";
import { sessionLifetime } from "./seams/session-model.ts";

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const IDLE_LIFETIME = 30 * DAY;
/** In percent of the lifetime; for confidential clients. */
const ROTATE_AFTER_PERCENT = 70;

export type ProviderOptions = Pick<Dependencies, "settings" | "urls" | "keys" | "fetch"> & {
  storage: Pick<Storage, "accounts" | "oidcAdapter">;
  renewRememberedGrant: (ctx: KoaContextWithOIDC) => Promise<Grant | undefined>;
  origins: ReadonlySet<string>;
  renderError: NonNullable<Configuration["renderError"]>;
  /** Where users enter the codes of devices. */
  devicePages: object;
};

/** Replaces every default of oidc-provider that doesn't suit this service. */
export function configuration(options: ProviderOptions): Configuration {
  const { settings, urls, keys, storage, origins, fetch, renderError } = options;
  const findAccount = createFindAccount(storage.accounts);
  return {
    adapter: storage.oidcAdapter,
    fetch: createFetchDocument(settings.CIMD, fetch, () => networkKeyOf(Provider.ctx?.ip ?? "")),
    findAccount,
    renderError,
    routes: Object.fromEntries(ENDPOINT_LIST.map(({ name, path }) => [name, path])),
    discovery: {
      service_documentation: `${urls.base}/docs`,
      protected_resources: [urls.base, urls.api, urls.mcp, urls.mcpRead], // RFC 9728 §4
    },
    cookies: cookies(urls, keys),
    clientBasedCORS: (_ctx, origin) => origins.has(origin),
    ...clientOptions(settings),
    ...authorizationOptions(options),
    ...tokenOptions(keys),
    features: features(options, findAccount),
  };
}

function clientOptions(settings: Settings): Configuration {
  return {
    clients: staticClients(settings),
    clientDefaults: {
      id_token_signed_response_alg: "RS256",
      response_modes: ["query"],
      // Metadata documents of agents omit these; clients of organizations state theirs.
      ...(settings.CIMD.accepted !== "off" && {
        application_type: "native",
        token_endpoint_auth_method: "none",
      }),
    },
    extraClientMetadata: { properties: EXTRA_METADATA },
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"],
    allowOmittingSingleRegisteredRedirectUri: true,
  };
}

function authorizationOptions({ renewRememberedGrant }: ProviderOptions): Configuration {
  const policy = prompts();
  return {
    responseTypes: ["code"],
    pkce: { required: () => true }, // RFC 9700 §2.1.1: for every client
    scopes: ["openid", "offline_access"],
    claims: { openid: ["sub", "preferred_username", "organization_id", "auth_time", "amr"] },
    extraParams: { state: checkSize },
    conformIdTokenClaims: false, // the id_token carries the claims, which saves a request
    interactions: { policy, url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
    loadExistingGrant: async (ctx) => {
      const { provider, result } = ctx.oidc;
      const grantId = result?.consent?.grantId;
      if (grantId) return provider.Grant.find(grantId);
      return (await isPromptedBeforeConsent(policy, ctx)) ? undefined : renewRememberedGrant(ctx);
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
      idTokenSigningAlgValues: ["RS256", "ES256"],
      clientAuthSigningAlgValues: SIGNING_ALGORITHMS,
      dPoPSigningAlgValues: DPOP_ALGS,
    },
    extraTokenClaims: useWorkloadToken,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"), // also without `offline_access`
    rotateRefreshToken,
    revokeGrantPolicy: () => true, // RFC 7009 §2.1: the whole grant along with a user's token
    ttl: {
      AuthorizationCode: MINUTE,
      AccessToken: ACCESS_TOKEN_LIFETIME,
      ClientCredentials: clientCredentialsLifetime,
      DeviceCode: 10 * MINUTE,
      IdToken: ID_TOKEN_LIFETIME,
      Interaction: 15 * MINUTE,
      Session: (_ctx, session) => sessionLifetime(session),
      Grant: GRANT_LIFETIME,
      RefreshToken: refreshTokenLifetime,
    },
  };
}

function features(
  { settings, urls, keys, devicePages }: ProviderOptions,
  findAccount: FindAccount,
): Configuration["features"] {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: true },
    rpInitiatedLogout: { enabled: false },
    dPoP: dPoP(keys),
    clientCredentials: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
    resourceIndicators: resourceIndicators(urls),
    introspection: { enabled: true, allowedPolicy: mayIntrospect(findAccount) },
    deviceFlow: {
      enabled: true, // the endpoints' table turns it off
      charset: "base-20", // RFC 8628 §6.1
      mask: "****-****",
      ...devicePages,
    },
    revocation: {
      enabled: true,
      // RFC 7009 §2.2: another client's token counts as unknown.
      allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
    },
    ...clientIdMetadataDocuments(settings),
  };
}

/** Never past the absolute lifetime of its family, nor past the consent that its grant follows from. */
const refreshTokenLifetime: NonNullable<Configuration["ttl"]>["RefreshToken"] = (ctx, token) => {
  const now = Math.floor(Date.now() / 1000);
  const issued = token.iiat ?? token.iat ?? now;
  const grantEnd = (ctx?.oidc?.entities.Grant?.exp ?? Number.POSITIVE_INFINITY) - ACCESS_TOKEN_LIFETIME;
  return Math.max(1, Math.min(IDLE_LIFETIME, issued + ABSOLUTE_LIFETIME - now, grantEnd - now));
};

/** Public clients on each use, others late in the lifetime (RFC 9700 §2.2.2). */
const rotateRefreshToken: Configuration["rotateRefreshToken"] = ({ oidc }) => {
  const token = oidc.entities.RefreshToken as (RefreshToken & { isReuse?: boolean }) | undefined;
  const isPublic = oidc.client?.tokenEndpointAuthMethod === "none";
  // A replay is detected when the token is used up.
  return isPublic || token?.isReuse || (token?.ttlPercentagePassed() ?? 0) >= ROTATE_AFTER_PERCENT;
};

/** RFC 6265bis §4.1.3: `__Host-` and `__Secure-` require https, so not on loopback. */
function cookies(urls: PublicUrls, keys: Keys): Configuration["cookies"] {
  const options = cookieOptions(urls);
  return {
    keys: keys.cookies,
    names: {
      session: sessionCookieOf(urls),
      interaction: options.secure ? "__Secure-interaction" : "interaction",
      resume: options.secure ? "__Secure-resume" : "resume",
    },
    long: { ...options, path: "/" },
    short: options,
  };
}
