import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { createServer as createTlsServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { calculateJwkThumbprint, EmbeddedJWK, exportJWK, generateKeyPair, jwtVerify } from "jose";
import type { Context, Middleware } from "koa";
import { type Configuration, errors, Provider } from "oidc-provider";
import { sha256 } from "../../../adapters/crypto/ids.ts";

export const CLIENT = { client_id: "client", client_secret: "a-secret-of-the-client-0123456789" };
export const OTHER = { client_id: "other", client_secret: "a-secret-of-the-other-client-0123456789" };
export const REDIRECT_URI = "http://127.0.0.1/callback";
export const SCOPE = "read";

type ResourceFlaws = {
  acceptsQuery?: boolean;
  acceptsForm?: boolean;
  hasNoChallenge?: boolean;
  ignores?: ("htm" | "htu" | "ath" | "iat" | "key" | "jti" | "proof" | "expiry")[];
  /** How long a token stays valid that was found before, in milliseconds. */
  cacheMs?: number;
};

/** One defect of a server, and the check that has to find it. */
export type Flaw = {
  what: string;
  found: string;
  configure?(configuration: Configuration): void;
  change?(provider: Provider): void;
  middleware?: Middleware;
  resource?: ResourceFlaws;
  tls?: ServerOptions;
};

export type ExampleServer = { issuer: string; resource: string; close(): Promise<unknown> };

const { privateKey } = await generateKeyPair("RS256", { extractable: true });
const signingKey = { ...(await exportJWK(privateKey)), kid: "key", use: "sig", alg: "RS256" };

/** oidc-provider with its development pages, a resource beside it, and at most one flaw. */
export async function startExampleServer(flaw: Partial<Flaw> = {}): Promise<ExampleServer> {
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const serve = (request: IncomingMessage, response: ServerResponse) => handle(request, response);
  const server: Server = flaw.tls ? createTlsServer(flaw.tls, serve) : createServer(serve);
  server.listen(0, "localhost");
  await once(server, "listening");
  const issuer = `${flaw.tls ? "https" : "http"}://localhost:${(server.address() as AddressInfo).port}`;
  const resource = `${issuer}/api`;

  const configuration = configurationOf(resource);
  flaw.configure?.(configuration);
  const provider = new Provider(issuer, configuration);
  flaw.change?.(provider);
  provider.use(security);
  if (flaw.middleware) provider.use(flaw.middleware);
  provider.use(serveResource(provider, resource, flaw.resource));
  handle = provider.callback();
  return {
    issuer,
    resource,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function configurationOf(resource: string): Configuration {
  const common = {
    application_type: "native" as const,
    grant_types: ["authorization_code", "refresh_token", "client_credentials"],
    redirect_uris: [REDIRECT_URI],
    response_types: ["code" as const],
  };
  const isOwn = (_ctx: unknown, client: { clientId: string }, token: { clientId?: string | undefined }) =>
    token.clientId === client.clientId;
  return {
    clients: [
      { ...CLIENT, ...common },
      { ...OTHER, ...common },
    ],
    jwks: { keys: [signingKey as never] },
    cookies: { keys: ["a-key-of-the-cookies"] },
    scopes: ["openid", "offline_access", SCOPE],
    pkce: { required: () => true },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: {
      AccessToken: 600,
      ClientCredentials: 600,
      AuthorizationCode: 60,
      RefreshToken: 3600,
      Grant: 3600,
      Session: 3600,
      Interaction: 600,
      IdToken: 600,
    },
    enabledJWA: { dPoPSigningAlgValues: ["ES256"] },
    features: {
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: isOwn },
      revocation: { enabled: true, allowedPolicy: isOwn },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1), requireNonce: () => false },
      pushedAuthorizationRequests: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, indicator) => {
          if (indicator === resource) return { scope: SCOPE, accessTokenFormat: "opaque" };
          throw new errors.InvalidTarget();
        },
      },
    },
  };
}

/** What a reverse proxy in front of it would add. */
const security: Middleware = async function addHeaders(ctx, next) {
  ctx.set("X-Content-Type-Options", "nosniff");
  ctx.set("Referrer-Policy", "no-referrer");
  ctx.set("X-Frame-Options", "DENY");
  await next();
  ctx.remove("X-Powered-By");
};

type Token = { jkt?: string; isExpired: boolean } | undefined;

function serveResource(provider: Provider, resource: string, flaws: ResourceFlaws = {}): Middleware {
  const { ignores = [], cacheMs = 0 } = flaws;
  const found = new Map<string, { token: Token; until: number }>();
  const proofs = new Set<string>();
  const ignored = (name: (typeof ignores)[number]) => ignores.includes(name);

  async function find(value: string): Promise<Token> {
    const cached = found.get(value);
    if (cached && cached.until > Date.now()) return cached.token;
    const token = ((await provider.AccessToken.find(value)) ??
      (await provider.ClientCredentials.find(value))) as Token;
    if (cacheMs > 0 && token) found.set(value, { token, until: Date.now() + cacheMs });
    return token;
  }

  function tokenOf(ctx: Context): [scheme: string, token: string] {
    const [, scheme = "", token = ""] = /^(Bearer|DPoP) ([^ ]+)$/i.exec(ctx.get("authorization")) ?? [];
    const inQuery = flaws.acceptsQuery && ctx.query.access_token;
    return inQuery ? ["bearer", String(inQuery)] : [scheme.toLowerCase(), token];
  }

  async function isProven(ctx: Context, token: string, jkt: string): Promise<boolean> {
    const proof = ctx.get("dpop");
    if (ignored("proof")) return true;
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      typ: "dpop+jwt",
      algorithms: ["ES256"],
    });
    if (!ignored("key") && (await calculateJwkThumbprint(protectedHeader.jwk as never)) !== jkt) return false;
    if (!ignored("htm") && payload.htm !== ctx.method) return false;
    if (!ignored("htu") && payload.htu !== resource) return false;
    if (!ignored("ath") && payload.ath !== sha256(token)) return false;
    if (!ignored("iat") && Math.abs(Number(payload.iat) - Date.now() / 1000) < 60 === false) return false;
    if (typeof payload.jti !== "string" || (!ignored("jti") && proofs.has(payload.jti))) return false;
    proofs.add(payload.jti);
    return true;
  }

  return async function serve(ctx, next) {
    if (ctx.path !== "/api") return next();
    const [scheme, value] = tokenOf(ctx);
    const token = value ? await find(value) : undefined;
    const isValid =
      token !== undefined &&
      (scheme === "dpop"
        ? token.jkt !== undefined && (await isProven(ctx, value, token.jkt).catch(() => false))
        : token.jkt === undefined || ignored("proof"));
    if (isValid) {
      ctx.body = { links: [] };
      return;
    }
    ctx.status = 401;
    ctx.body = { error: "unauthorized" };
    const isAbsent = ctx.get("authorization") === "";
    const error = isAbsent ? "" : ', error="invalid_token"';
    if (!flaws.hasNoChallenge) ctx.set("WWW-Authenticate", `Bearer realm="api"${error}`);
  };
}
