import type { Context, Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { requireRead } from "../../resources/http/methods.ts";
import { mount } from "../../resources/http/mount.ts";
import { forwardedFor } from "../http/client-ip.ts";
import type { Log } from "../log.ts";
import { createReadiness, type ProcessReport, readClockAhead, respondLive, respondReady } from "./health.ts";
import type { ProcessMetrics } from "./metrics.ts";
import { isOperator, type OperatorAccess } from "./operator-access.ts";
import type { Tracing } from "./tracing.ts";

// An allowlist, because each label stays in memory and callers could request any number of paths.
const FIXED_ROUTES = new Set([
  "/",
  "/oauth/authorize",
  "/oauth/token",
  "/oauth/revoke",
  "/oauth/introspect",
  "/oauth/par",
  "/oauth/register",
  "/oauth/userinfo",
  "/oauth/jwks",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/v1",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-protected-resource/mcp/",
  "/v1/openapi.json",
  "/mcp",
  "/mcp/",
  "/docs",
  "/favicon.ico",
  "/robots.txt",
  "/.well-known/security.txt",
]);

/** The route of short links. */
const SLUG_ROUTE = "/:slug";

/** Health checks, metrics and the request log. */
export type Observability = {
  /** Serves `/healthz`, `/readyz` and, to operators and unless it has its own port, `/metrics`. */
  probes: Middleware;
  /** Makes `/readyz` fail from now on, because the process is about to stop. */
  announceStop(): void;
  /** Serves only `/metrics`. */
  metrics: Middleware;
  /** Counts and logs every request, except those for `probes`. */
  observe: Middleware;
};

type ObservabilityOptions = {
  storage: Storage;
  metrics: ProcessMetrics;
  tracing?: Tracing | undefined;
  log: Log;
  /** The share of successful requests that are logged. */
  accessLogSample: number;
  metricsApart: boolean;
  operatorAccess: OperatorAccess;
  /** The number of proxies that the settings name. */
  trustProxy: number;
};

const FIRST_ERROR = 400;

/** Creates the probes, the metrics and the request log of a process. */
export function createObservability(options: ObservabilityOptions): Observability {
  const { storage, metrics, tracing, log, accessLogSample, metricsApart, operatorAccess, trustProxy } =
    options;
  const serveMetrics = metrics.serve(storage);
  const readiness = createReadiness(storage, log);
  const probePaths = new Set(["/healthz", "/readyz", ...(metricsApart ? [] : ["/metrics"])]);
  const isProbe = ({ path }: Context) => probePaths.has(path);
  let isStopping = false;

  function record(ctx: Context, started: number) {
    const { method, status } = ctx;
    const { requestId } = ctx.state;
    const route = routeOf(ctx);
    metrics.countOutcome(ctx, route);
    const seconds = (performance.now() - started) / 1000;
    metrics.countRequest({ method, route, status, seconds });
    tracing?.describeRequest({ requestId, method, route, status });
    if (!log.isLevelEnabled("info") || !isSampled(status, accessLogSample)) return;
    log.info(
      { request_id: requestId, method, route, status, ms: Math.round(seconds * 1e6) / 1e3 },
      "request",
    );
  }

  async function reportTo(ctx: Context): Promise<ProcessReport> {
    const clock = await readClockAhead(storage);
    return {
      pid: process.pid,
      ...(clock !== undefined && { clock_ahead_s: clock }),
      request: { trust_proxy: trustProxy, address: ctx.ip, forwarded_for: forwardedFor(ctx.req) },
    };
  }

  return {
    metrics: serveMetrics,

    announceStop() {
      isStopping = true;
    },

    probes: mount(isProbe, [
      requireRead,
      async function probe(ctx, next) {
        if (ctx.path === "/healthz") return respondLive(ctx);
        const isTrusted = isOperator(ctx, operatorAccess);
        if (ctx.path === "/readyz") {
          const state = isStopping ? "stopping" : await readiness();
          return respondReady(ctx, state, isTrusted ? () => reportTo(ctx) : undefined);
        }
        return isTrusted ? serveMetrics(ctx, next) : rejectReader(ctx, operatorAccess);
      },
    ]),

    async observe(ctx, next) {
      if (isProbe(ctx)) return next();
      const started = performance.now();
      try {
        await next();
      } finally {
        record(ctx, started);
      }
    },
  };
}

/** Returns whether a request is logged: each that failed, and a share of the others. */
function isSampled(status: number, share: number): boolean {
  return status >= FIRST_ERROR || share >= 1 || Math.random() < share;
}

/** Responds to a caller that may not read the metrics. */
function rejectReader(ctx: Context, { token }: OperatorAccess): void {
  ctx.status = token === undefined ? 403 : 401;
  ctx.set("Cache-Control", "no-store");
  if (token !== undefined) ctx.set("WWW-Authenticate", "Bearer");
  ctx.body = {
    error: "access_denied",
    error_description:
      "metrics are served to this machine, on METRICS_PORT, or with METRICS_TOKEN as bearer token",
  };
}

/** Returns the route pattern, never the path itself, which may contain a secret. */
function routeOf(ctx: Context): string {
  if (typeof ctx._matchedRoute === "string") return ctx._matchedRoute;
  if (FIXED_ROUTES.has(ctx.path)) return ctx.path;
  return /^\/[^/]+$/.test(ctx.path) ? SLUG_ROUTE : "other";
}
