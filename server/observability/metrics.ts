import type { Middleware } from "koa";
import { Counter, collectDefaultMetrics, Registry } from "prom-client";
import type { Outcome } from "../../resources/webhooks/types.ts";
import { type CountedRequest, createRequestMetrics } from "./request-metrics.ts";

/** The Prometheus metrics of a process. */
export type Metrics = {
  /** Serves `/metrics`. */
  serve: Middleware;
  countRequest(request: CountedRequest): void;
  /** Counts a webhook delivery attempt. */
  countAttempt(outcome: Outcome): void;
};

/** Creates the metrics of a process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkgate_" });
  const countRequest = createRequestMetrics(registry);
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

    countRequest,

    countAttempt: ({ status, isUnsent }) =>
      attempts.inc({ outcome: isUnsent ? "unsent" : status === "pending" ? "retried" : status }),
  };
}
