import type { Context, Middleware } from "koa";
import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { Storage } from "../adapters/index.ts";
import { area } from "../resources/area.ts";
import type { Outcome } from "../resources/webhooks/ports.ts";
import type { Log } from "./log.ts";
import { RETRY_AFTER_S } from "./outage.ts";

/** What whoever runs the service looks at. */
export type Operations = {
  /** `/healthz`, `/readyz`, and `/metrics` unless it has a port of its own. */
  probes: Middleware;
  /** From here on `/readyz` says that the process is about to end. */
  announceStop(): void;
  /** `/metrics` alone. */
  metrics: Middleware;
  /** Counts and logs every request. */
  observe: Middleware;
  /** Counts an attempt to deliver to a webhook. */
  countAttempt(outcome: Outcome): void;
};

type OperationOptions = { storage: Storage; log: Log; metricsApart: boolean };

/** Makes the probes and the metrics of one process. */
export function createOperations({ storage, log, metricsApart }: OperationOptions): Operations {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkgate_" });
  const requests = new Counter({
    name: "linkgate_http_requests_total",
    help: "Requests answered",
    labelNames: ["method", "route", "status"],
    registers: [registry],
  });
  const durations = new Histogram({
    name: "linkgate_http_request_duration_seconds",
    help: "Time from the request to the end of its answer",
    labelNames: ["route"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers: [registry],
  });
  const attempts = new Counter({
    name: "linkgate_webhook_attempts_total",
    help: "Attempts to deliver to webhooks: succeeded, retried (to be tried again), failed (for good), unsent",
    labelNames: ["outcome"],
    registers: [registry],
  });

  let isStopping = false;

  const metrics: Middleware = async function serveMetrics(ctx, next) {
    if (ctx.path !== "/metrics") return next();
    ctx.type = registry.contentType;
    ctx.body = await registry.metrics();
  };

  return {
    metrics,

    announceStop() {
      isStopping = true;
    },

    countAttempt: ({ status, isUnsent }) =>
      attempts.inc({ outcome: isUnsent ? "unsent" : status === "pending" ? "retried" : status }),

    probes: area(
      ({ method, path }) => PROBES.has(path) && (method === "GET" || method === "HEAD"),
      [
        async function probe(ctx, next) {
          if (ctx.path === "/readyz")
            return isStopping ? answerStopping(ctx) : answerReady(ctx, storage, log);
          if (ctx.path === "/metrics") return metricsApart ? next() : metrics(ctx, next);
          ctx.body = { status: "ok" };
        },
      ],
    ),

    async observe(ctx, next) {
      const started = performance.now();
      try {
        await next();
      } finally {
        const seconds = (performance.now() - started) / 1000;
        const route = routeOf(ctx);
        requests.inc({ method: ctx.method, route, status: ctx.status });
        durations.observe({ route }, seconds);
        log.info(
          {
            request_id: ctx.state.requestId,
            method: ctx.method,
            route,
            status: ctx.status,
            ms: Math.round(seconds * 1e6) / 1e3,
          },
          "request",
        );
      }
    },
  };
}

const PROBES = new Set(["/healthz", "/readyz", "/metrics"]);

function answerStopping(ctx: Context): void {
  ctx.status = 503;
  ctx.body = { status: "stopping" };
}

async function answerReady(ctx: Context, storage: Storage, log: Log): Promise<void> {
  try {
    const pending = await storage.pendingMigrations();
    ctx.status = pending.length ? 503 : 200;
    ctx.body = pending.length ? { status: "not migrated" } : { status: "ready" };
  } catch (error) {
    log.error({ err: error }, "the database does not answer");
    ctx.status = 503;
    ctx.set("Retry-After", String(RETRY_AFTER_S));
    ctx.body = { status: "no database" };
  }
}

// Listed, because every address that is counted by itself stays in memory: callers can make up any number.
const FIXED = new Set([
  "/",
  "/oauth/authorize",
  "/oauth/token",
  "/oauth/revoke",
  "/oauth/introspect",
  "/oauth/par",
  "/oauth/jwks",
  "/.well-known/oauth-authorization-server",
  "/.well-known/openid-configuration",
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/v1",
  "/.well-known/oauth-protected-resource/mcp",
  "/v1/openapi.json",
  "/mcp",
  "/docs",
]);

/** The pattern of the address: never the address itself, which may hold a secret. */
function routeOf(ctx: Context): string {
  if (typeof ctx._matchedRoute === "string") return ctx._matchedRoute;
  if (FIXED.has(ctx.path)) return ctx.path;
  return /^\/[^/]+$/.test(ctx.path) ? "/:slug" : "other";
}
