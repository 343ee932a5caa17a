import type { EventEmitter } from "node:events";
import type { RequestListener } from "node:http";
import Koa, { type Middleware } from "koa";
import type { Introspect } from "../resources/access/introspect.ts";
import { requireRead } from "../resources/http/methods.ts";
import { isBelow, isOfResource, mount } from "../resources/http/mount.ts";
import { isUnavailable } from "../resources/http/unavailable.ts";
import { createResources, type Resources } from "../resources/index.ts";
import { createServices, type Services } from "../resources/services.ts";
import { authorizationServer } from "./authorization-server.ts";
import type { Dependencies } from "./dependencies.ts";
import { docs } from "./docs/index.ts";
import { createFront } from "./front/index.ts";
import { assets } from "./http/assets.ts";
import { trustProxies } from "./http/client-ip.ts";
import { compressTexts } from "./http/compression.ts";
import { createRespondWithError, handleErrors } from "./http/error-pages.ts";
import { checkFraming, checkHost } from "./http/host-check.ts";
import type { OnError } from "./http/on-error.ts";
import { parseQueries } from "./http/query.ts";
import { redirectGuesses, redirectSlashes } from "./http/redirects.ts";
import { normalizeTargets } from "./http/request-target.ts";
import { commonHeaders } from "./http/security-headers.ts";
import { separateHosts } from "./http/separate-hosts.ts";
import { siteFiles } from "./http/site-files.ts";
import { type Keys, nonceSecretOf } from "./keys/shared-keys.ts";
import { landing } from "./landing/routes.ts";
import { createObservability, type Observability } from "./observability/index.ts";
import type { Tracing } from "./observability/tracing.ts";
import { isClientPath, isOauthPath } from "./provider/paths.ts";
import { acceptJson } from "./provider/responses.ts";
import { createCallCounter } from "./rate-limits/api.ts";
import { createRemoteIntrospect } from "./remote-introspection.ts";
import type { Settings } from "./settings/config.ts";
import { hostsOf, originsOf } from "./settings/public-urls.ts";
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

  const respondWithError = createRespondWithError(urls, isOauthPath);
  const showErrors = handleErrors(onError, respondWithError);

  const services = createServices({
    stores: storage,
    webhookAllowHosts: settings.WEBHOOK_ALLOW_HOSTS,
    urls,
    cursorSecret: keys.signing,
  });
  const parts = { ...options, services };
  const remote = remoteIntrospection(settings, tracing);
  const { app, fastPaths, middleware, useKeys, close } = remote
    ? { app: new Koa(), fastPaths: [], middleware: [landing(urls)], useKeys() {}, close: async () => {} }
    : authorizationServer(parts, onError, respondWithError, showErrors);
  trustProxies(app, settings.TRUST_PROXY);
  parseQueries(app);
  (app as EventEmitter).on("error", onError);
  const introspect = remote ?? storage.findActiveToken;
  const protectedParts = createProtectedParts({ ...parts, onError, introspect });
  const setHeaders = commonHeaders(isSecure(urls));
  const first = firstMiddleware({
    ...parts,
    protectedParts,
    observability,
    setHeaders,
    showErrors,
    hasSignIn: !remote,
  });
  for (const step of [...first, ...middleware]) app.use(step);
  const front = createFront(app, {
    paths: [...protectedParts.fastPaths, ...fastPaths],
    steps: [setHeaders, observability.observe],
    onError,
  });
  const listener = normalizeTargets(front);
  return {
    app,
    listener: tracing ? tracing.traceRequests(listener) : listener,
    observability,
    useKeys,
    close,
  };
}

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

type FirstOptions = Dependencies & {
  services: Services;
  protectedParts: Resources;
  observability: Observability;
  setHeaders: Middleware;
  showErrors: Middleware;
  hasSignIn: boolean;
};

/** Returns what every request passes, in this order, up to the resources. */
function firstMiddleware(options: FirstOptions): Middleware[] {
  const { settings, urls, services, protectedParts, observability } = options;
  return [
    options.setHeaders,
    compressTexts,
    observability.observe,
    mount(isClientPath, [acceptJson]),
    options.showErrors,
    checkFraming,
    observability.probes,
    checkHost(hostsOf(urls), urls.base),
    siteFiles(urls.base, settings.SECURITY_CONTACT),
    separateHosts(urls, services.links.isReserved),
    mount(isBelow("/assets/"), [requireRead, assets]),
    ...redirectSlashes(urls.base),
    ...(options.hasSignIn ? [redirectGuesses(urls.base)] : []),
    mount(isOfResource(`${urls.base}/docs`), [requireRead, docs(protectedParts, urls)]),
    ...protectedParts.middleware,
  ];
}
