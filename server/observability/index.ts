import type { Context, Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { mount } from "../../resources/http/mount.ts";
import type { Outcome } from "../../resources/webhooks/types.ts";
import type { Log } from "../log.ts";
import { createReadiness, respondLive, respondReady } from "./health.ts";
import { createMetrics } from "./metrics.ts";
import { isOperator, type OperatorAccess } from "./operator-access.ts";
import { routeOf } from "./route-label.ts";

/** Health checks, metrics and the request log. */
export type Observability = {
  /** Serves `/healthz`, `/readyz` and, to operators and unless it has its own port, `/metrics`. */
  probes: Middleware;
  /** Makes `/readyz` fail from now on, because the process is about to stop. */
  announceStop(): void;
  /** Serves only `/metrics`. */
  metrics: Middleware;
  /** Counts and logs every request. */
  observe: Middleware;
  /** Counts a webhook delivery attempt. */
  countAttempt(outcome: Outcome): void;
};

type ObservabilityOptions = {
  storage: Storage;
  log: Log;
  metricsApart: boolean;
  operatorAccess: OperatorAccess;
};

const PROBES = new Set(["/healthz", "/readyz", "/metrics"]);

/** Creates the probes, the metrics and the request log of a process. */
export function createObservability(options: ObservabilityOptions): Observability {
  const { storage, log, metricsApart, operatorAccess } = options;
  const metrics = createMetrics();
  const readiness = createReadiness(storage, log);
  let isStopping = false;

  return {
    metrics: metrics.serve,
    countAttempt: metrics.countAttempt,

    announceStop() {
      isStopping = true;
    },

    probes: mount(
      ({ method, path }) => PROBES.has(path) && (method === "GET" || method === "HEAD"),
      [
        async function probe(ctx, next) {
          if (ctx.path === "/healthz") return respondLive(ctx);
          const isTrusted = isOperator(ctx, operatorAccess);
          if (ctx.path === "/readyz") {
            const state = isStopping ? "stopping" : await readiness();
            return respondReady(ctx, state, isTrusted);
          }
          if (metricsApart) return next();
          return isTrusted ? metrics.serve(ctx, next) : rejectReader(ctx, operatorAccess);
        },
      ],
    ),

    async observe(ctx, next) {
      const started = performance.now();
      try {
        await next();
      } finally {
        const seconds = (performance.now() - started) / 1000;
        const { method, status } = ctx;
        const route = routeOf(ctx);
        metrics.countRequest({ method, route, status, seconds });
        if (log.isLevelEnabled("info")) {
          const request_id = ctx.state.requestId;
          log.info({ request_id, method, route, status, ms: Math.round(seconds * 1e6) / 1e3 }, "request");
        }
      }
    },
  };
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
