import type { EventEmitter } from "node:events";
import type { RequestListener } from "node:http";
import Koa, { type Middleware } from "koa";
import type { Introspect } from "../resources/access/introspect.ts";
import { isBelow, isOfResource, mount } from "../resources/http/mount.ts";
import { isUnavailable } from "../resources/http/unavailable.ts";
import { createResources, type Resources } from "../resources/index.ts";
import { createServices, type Services } from "../resources/services.ts";
import { apiInFront } from "./api-front.ts";
import { authorizationServer } from "./authorization-server.ts";
import type { Settings } from "./config.ts";
import type { Dependencies } from "./dependencies.ts";
import { docs } from "./docs/index.ts";
import { assets } from "./http/assets.ts";
import { trustProxies } from "./http/client-ip.ts";
import { handleErrors } from "./http/error-pages.ts";
import { checkHost } from "./http/host-check.ts";
import type { OnError } from "./http/on-error.ts";
import { redirectGuesses, redirectSlashes } from "./http/redirects.ts";
import { commonHeaders } from "./http/security-headers.ts";
import { separateHosts } from "./http/separate-hosts.ts";
import { siteFiles } from "./http/site-files.ts";
import { type Keys, nonceSecretOf } from "./keys/shared-keys.ts";
import { landing } from "./landing/routes.ts";
import { createObservability, type Observability } from "./observability/index.ts";
import type { Tracing } from "./observability/tracing.ts";
import { isClientPath } from "./provider/paths.ts";
import { acceptJson } from "./provider/requests.ts";
import { hostsOf, originsOf } from "./public-urls.ts";
import { createCallCounter } from "./rate-limits/api.ts";
import { redirectInFront } from "./redirect-front.ts";
import { createRemoteIntrospect } from "./remote-introspection.ts";
import { sectionPath } from "./ui/dashboard-layout.ts";
import { messagePage } from "./ui/page.ts";
import { VERSION } from "./version.ts";

// The extensions of MCP for authorization.
const CLIENT_CREDENTIALS = "io.modelcontextprotocol/oauth-client-credentials";
const ENTERPRISE = "io.modelcontextprotocol/enterprise-managed-authorization";

/**
 * Creates the Koa application: oidc-provider's own with all other middleware in front of its routes, or only the
 * resources if another server introspects the tokens.
 */
export function createApp(options: Dependencies): {
  app: Koa;
  /** Responds to requests: serves the most frequent ones itself, and passes all others to the application. */
  listener: RequestListener;
  observability: Observability;
  /** Replaces the keys that sign id_tokens and cookies. */
  useKeys(keys: Keys): void;
  /** Stores what requests have left to be stored later. */
  close(): Promise<void>;
} {
  const { settings, urls, storage, keys, metrics, tracing, log } = options;
  const observability = createObservability({
    storage,
    metrics,
    tracing,
    log,
    accessLogSample: settings.ACCESS_LOG_SAMPLE,
    metricsApart: settings.METRICS_PORT !== undefined,
    operatorAccess: { publicHost: new URL(urls.base).host, token: settings.METRICS_TOKEN },
    trustProxy: settings.TRUST_PROXY,
  });
  const onError: OnError = (error, ctx) =>
    log.error(
      { err: error, request_id: ctx?.state.requestId },
      isUnavailable(error) ? "outage" : "unexpected error",
    );

  const services = createServices({
    stores: storage,
    webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS,
    urls,
    cursorSecret: keys.signing,
  });
  const parts = { ...options, services };
  const remote = remoteIntrospection(settings, tracing);
  const { app, direct, middleware, useKeys, close } = remote
    ? { app: new Koa(), direct: passOn, middleware: [landing(urls)], useKeys() {}, close: async () => {} }
    : authorizationServer(parts, onError);
  trustProxies(app, settings.TRUST_PROXY);
  (app as EventEmitter).on("error", onError);
  const introspect = remote ?? storage.findActiveToken;
  const protectedParts = createProtectedParts({ ...parts, onError, introspect });
  const hasSignIn = !remote;
  const front = frontMiddleware({ ...parts, protectedParts, observability, onError, direct, hasSignIn });
  for (const step of [...front, ...middleware]) app.use(step);
  const common = { ...protectedParts, secure: isSecure(urls), observability };
  const withApi = apiInFront(app.callback(), { ...common, trustProxy: settings.TRUST_PROXY, onError });
  const listener = redirectInFront(withApi, common);
  return {
    app,
    listener: tracing ? tracing.traceRequests(listener) : listener,
    observability,
    useKeys,
    close,
  };
}

const passOn: Middleware = (_ctx, next) => next();

function remoteIntrospection(settings: Settings, tracing: Tracing | undefined): Introspect | undefined {
  const { INTROSPECTION_URL, INTROSPECTION_CLIENT_ID, INTROSPECTION_CLIENT_SECRET } = settings;
  if (!INTROSPECTION_URL) return undefined;
  return createRemoteIntrospect({
    url: INTROSPECTION_URL,
    clientId: INTROSPECTION_CLIENT_ID,
    clientSecret: INTROSPECTION_CLIENT_SECRET as string,
    trace: tracing?.traceOutgoing("everything"),
  });
}

function isSecure({ base }: Dependencies["urls"]): boolean {
  return base.startsWith("https:");
}

type ProtectedOptions = Dependencies & { services: Services; onError: OnError; introspect: Introspect };

/** Creates what a token protects, and the short links. */
function createProtectedParts(options: ProtectedOptions): Resources {
  const { settings, urls, storage, keys, rateLimitStore, services, onError, introspect } = options;
  return createResources({
    introspect,
    dpop: {
      isFirstUse: ({ jkt, jti, expiresAt }) =>
        storage.replays.useOnce({ issuer: `dpop:${jkt}`, jti, expiresAt }),
      nonceSecret: nonceSecretOf(keys),
    },
    services,
    ...(settings.RATE_LIMIT && { calls: createCallCounter(rateLimitStore) }),
    idempotency: storage.idempotency,
    urls,
    origins: originsOf(settings, urls),
    behindProxy: settings.TRUST_PROXY > 0,
    version: VERSION,
    signingSecret: keys.signing,
    mcpExtensions: settings.IDP_ISSUER ? [CLIENT_CREDENTIALS, ENTERPRISE] : [CLIENT_CREDENTIALS],
    webhookPageUrl: (organizationId, id) => `${urls.base}${sectionPath(organizationId, "webhooks")}/${id}`,
    onError,
    renderErrorPage: (status, detail) =>
      status === 404
        ? messagePage("Link not found", "Check the spelling. The link may have been deleted.")
        : messagePage("This link is no longer available", detail),
  });
}

type FrontOptions = Dependencies & {
  services: Services;
  protectedParts: Resources;
  observability: Observability;
  onError: OnError;
  /** Serves the most frequent requests of the authorization server. */
  direct: Middleware;
  hasSignIn: boolean;
};

/** Returns what every request passes, in this order, up to the resources. */
function frontMiddleware(options: FrontOptions): Middleware[] {
  const { settings, urls, services, protectedParts, observability, onError } = options;
  return [
    commonHeaders({ secure: isSecure(urls) }),
    observability.probes,
    observability.observe,
    mount(isClientPath, [acceptJson]),
    handleErrors(onError, urls.base),
    checkHost(hostsOf(urls), urls.base),
    siteFiles(urls.base, settings.SECURITY_CONTACT),
    separateHosts(urls, services.links.isReserved),
    options.direct,
    mount(isBelow("/assets/"), [assets]),
    ...redirectSlashes(urls.base),
    ...(options.hasSignIn ? [redirectGuesses(urls.base)] : []),
    mount(isOfResource(`${urls.base}/docs`), [docs(protectedParts, urls)]),
    ...protectedParts.middleware,
  ];
}
