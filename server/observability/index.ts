import type { Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { mount } from "../../resources/http/mount.ts";
import type { Outcome } from "../../resources/webhooks/types.ts";
import type { Log } from "../log.ts";
import { respondLive, respondReady } from "./health.ts";
import { createMetrics } from "./metrics.ts";
import { routeOf } from "./route-label.ts";

/** Health checks, metrics and the request log. */
export type Observability = {
  /** Serves `/healthz`, `/readyz` and, unless it has its own port, `/metrics`. */
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

type ObservabilityOptions = { storage: Storage; log: Log; metricsApart: boolean };

const PROBES = new Set(["/healthz", "/readyz", "/metrics"]);

/** Creates the probes, the metrics and the request log of a process. */
export function createObservability({ storage, log, metricsApart }: ObservabilityOptions): Observability {
  const metrics = createMetrics();
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
          if (ctx.path === "/readyz") return respondReady(ctx, { storage, log, isStopping });
          return metricsApart ? next() : metrics.serve(ctx, next);
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
        const request_id = ctx.state.requestId;
        log.info({ request_id, method, route, status, ms: Math.round(seconds * 1e6) / 1e3 }, "request");
      }
    },
  };
}
