import {
  type AccessToken,
  type AdapterFactory,
  type Client,
  type ClientCredentials,
  type Configuration,
  errors,
  type FindAccount,
  type KoaContextWithOIDC,
  type RefreshToken,
} from "oidc-provider";
import type { Addresses } from "../../resources/metadata.ts";
import { isPaid } from "../../resources/plans.ts";
import type { Settings } from "../config.ts";
import { resourceIndicators } from "./audiences.ts";
import { EXTRA_METADATA, organizationOf, RESOURCE_SERVER, staticClients } from "./clients.ts";
import { cookies } from "./cookies.ts";
import type { Keys } from "./keys.ts";
import { prompts } from "./policy.ts";
import { sessionLifetime } from "./sessions.ts";

const SECOND = 1;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A refresh token left alone for so long is dead. */
const REFRESH_IDLE = 30 * DAY;
/** So long after the consent everything that came of it is dead (RFC 9700 §4.14.2). */
const REFRESH_ABSOLUTE = 90 * DAY;
/** Share of its life after which a confidential client's refresh token is rotated, in per cent. */
const ROTATE_AFTER_PERCENT = 70;

export type ProviderOptions = {
  settings: Settings;
  addresses: Addresses;
  keys: Keys;
  adapter: AdapterFactory;
  findAccount: FindAccount;
  origins: ReadonlySet<string>;
  /** Shows an error of the authorization endpoint that must not be sent to the client. */
  renderError: NonNullable<Configuration["renderError"]>;
};

/** The whole configuration of oidc-provider: every default that is unfit for this service is set here. */
export function configuration(options: ProviderOptions): Configuration {
  const { settings, addresses, keys, adapter, findAccount, origins, renderError } = options;
  return {
    adapter,
    findAccount,
    renderError,
    jwks: keys.jwks,
    clients: staticClients(settings),
    clientDefaults: clientDefaults(settings),
    extraClientMetadata: { properties: EXTRA_METADATA },
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none"],
    responseTypes: ["code"],
    pkce: { required: () => true }, // RFC 9700 §2.1.1: of every client
    scopes: ["openid", "offline_access"],
    claims: { openid: ["sub", "preferred_username", "organization_id"] },
    conformIdTokenClaims: false, // there is no userinfo endpoint to fetch them from
    acceptQueryParamAccessTokens: false,
    allowOmittingSingleRegisteredRedirectUri: true,
    clockTolerance: 0,
    formats: { bitsOfOpaqueRandomness: 256 },
    enabledJWA: {
      idTokenSigningAlgValues: ["RS256"],
      clientAuthSigningAlgValues: ["RS256", "ES256"],
    },
    routes: {
      authorization: "/oauth/authorize",
      token: "/oauth/token",
      revocation: "/oauth/revoke",
      introspection: "/oauth/introspect",
      pushed_authorization_request: "/oauth/par",
      jwks: "/oauth/jwks",
      end_session: "/oauth/session/end",
    },
    discovery: {
      service_documentation: `${addresses.base}/docs`,
      protected_resources: [addresses.base, addresses.api, addresses.mcp], // RFC 9728 §4
    },
    cookies: cookies(addresses, keys),
    interactions: {
      policy: prompts(),
      url: (_ctx, interaction) => `/interaction/${interaction.uid}`,
    },
    loadExistingGrant: async ({ oidc }) => {
      const grantId = oidc.result?.consent?.grantId;
      return grantId ? oidc.provider.Grant.find(grantId) : undefined;
    },
    expiresWithSession: async () => false,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: ({ oidc }) => {
      const token = oidc.entities.RefreshToken;
      const isPublic = oidc.client?.clientAuthMethod === "none"; // RFC 9700 §2.2.2
      return isPublic || (token !== undefined && token.ttlPercentagePassed() >= ROTATE_AFTER_PERCENT);
    },
    revokeGrantPolicy: () => true,
    clientBasedCORS: (_ctx, origin) => origins.has(origin),
    ttl: {
      AuthorizationCode: MINUTE,
      AccessToken: HOUR,
      ClientCredentials: HOUR,
      IdToken: HOUR,
      Interaction: 15 * MINUTE,
      Session: (_ctx, session) => sessionLifetime(session),
      Grant: REFRESH_ABSOLUTE + HOUR,
      RefreshToken: (_ctx, token) => {
        const issued = token.iiat ?? token.iat ?? now();
        return Math.max(1, Math.min(REFRESH_IDLE, issued + REFRESH_ABSOLUTE - now()));
      },
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: false }, // the resources do not check it
      clientCredentials: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      resourceIndicators: resourceIndicators(addresses),
      introspection: { enabled: true, allowedPolicy: mayIntrospect(findAccount) },
      // A foreign token is answered like an unknown one: 200, and nothing happens (RFC 7009 §2.2).
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      ...clientIdMetadataDocuments(settings),
    },
  };
}

type Introspected = AccessToken | ClientCredentials | RefreshToken;

/**
 * RFC 7662 §2.2: a client sees its own tokens, the resource server every access token; nobody else's refresh token,
 * and no refresh token that would be refused now.
 */
function mayIntrospect(findAccount: FindAccount) {
  return async (ctx: KoaContextWithOIDC, client: Client, token: Introspected): Promise<boolean> => {
    if (client.clientId === RESOURCE_SERVER) return token.kind !== "RefreshToken";
    if (token.clientId !== client.clientId) return false;
    const organization = organizationOf(client);
    if (organization && !isPaid(organization.plan)) return false;
    return token.kind !== "RefreshToken" || isUsable(findAccount, ctx, token);
  };
}

async function isUsable(find: FindAccount, ctx: KoaContextWithOIDC, token: RefreshToken): Promise<boolean> {
  try {
    return Boolean(await find(ctx, token.accountId, token));
  } catch (error) {
    if (error instanceof errors.OIDCProviderError) return false;
    throw error;
  }
}

/** Metadata documents of agents leave these out; clients of organizations state theirs. */
function clientDefaults({ CIMD }: Settings): Configuration["clientDefaults"] {
  return {
    id_token_signed_response_alg: "RS256",
    response_modes: ["query"],
    ...(CIMD && { application_type: "native", token_endpoint_auth_method: "none" }),
  };
}

/** Clients known by the address of a metadata document, which act for people only, never for themselves. */
function clientIdMetadataDocuments({ CIMD }: Settings): object {
  if (!CIMD) return {};
  return {
    clientIdMetadataDocument: {
      enabled: true,
      ack: "draft-02",
      allowFetch: (_ctx: KoaContextWithOIDC, clientId: string) => isDocumentUrl(new URL(clientId)),
      allowClient: (_ctx: KoaContextWithOIDC, client: Client) =>
        (client.grantTypes ?? []).every((type) => type === "authorization_code" || type === "refresh_token"),
    },
  };
}

/**
 * Whether a document may be asked for. The library looks at the address only when it is connected, which is enough to
 * try the ports of this host and its network: a host that is a number or has no domain is not even connected to.
 */
function isDocumentUrl({ hostname, pathname }: URL): boolean {
  const host = hostname.replace(/\.$/, "");
  const isNumber = host.startsWith("[") || /(^|\.)\d+$/.test(host);
  const isLocal = !host.includes(".") || host.endsWith(".localhost") || host.endsWith(".local");
  return pathname !== "/" && !isNumber && !isLocal;
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
