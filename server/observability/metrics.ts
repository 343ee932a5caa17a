import type { Middleware } from "koa";
import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { Outcome } from "../../resources/webhooks/types.ts";

/** The Prometheus metrics of a process. */
export type Metrics = {
  /** Serves `/metrics`. */
  serve: Middleware;
  countRequest(request: { method: string; route: string; status: number; seconds: number }): void;
  /** Counts a webhook delivery attempt. */
  countAttempt(outcome: Outcome): void;
};

/** Creates the metrics of a process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkgate_" });
  const requests = new Counter({
    name: "linkgate_http_requests_total",
    help: "HTTP requests",
    labelNames: ["method", "route", "status"],
    registers: [registry],
  });
  const durations = new Histogram({
    name: "linkgate_http_request_duration_seconds",
    help: "Duration of HTTP requests in seconds",
    labelNames: ["route"],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers: [registry],
  });
  const attempts = new Counter({
    name: "linkgate_webhook_attempts_total",
    help: "Webhook delivery attempts: succeeded, retried (will be retried), failed (permanently), unsent",
    labelNames: ["outcome"],
    registers: [registry],
  });

  return {
    async serve(ctx, next) {
      if (ctx.path !== "/metrics") return next();
      ctx.type = registry.contentType;
      ctx.body = await registry.metrics();
    },

    countRequest({ method, route, status, seconds }) {
      requests.inc({ method, route, status });
      durations.observe({ route }, seconds);
    },

    countAttempt: ({ status, isUnsent }) =>
      attempts.inc({ outcome: isUnsent ? "unsent" : status === "pending" ? "retried" : status }),
  };
}
