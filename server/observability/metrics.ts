import type { Context, Middleware } from "koa";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { StatementObserver } from "../../adapters/database/statement-observer.ts";
import type { Storage } from "../../adapters/index.ts";
import type { Outcome } from "../../resources/webhooks/types.ts";
import { createBacklogMetrics } from "./backlog-metrics.ts";
import { createOAuthMetrics } from "./oauth-metrics.ts";
import { type CountedRequest, createRequestMetrics } from "./request-metrics.ts";
import { register, registerCounter, registerGauge } from "./samples.ts";
import { createStatementMetrics } from "./statement-metrics.ts";
import { combineMetrics, shareMetrics } from "./worker-metrics.ts";

/** The Prometheus metrics of a process. */
export type ProcessMetrics = {
  /** Adds what is read from the database, and returns the middleware that serves `/metrics`, of all workers. */
  serve(storage: Pick<Storage, "backlog" | "connections">): Middleware;
  /** Hands the last counts over to the primary process, if this process is a worker. */
  handOver(): Promise<void>;
  countRequest(request: CountedRequest): void;
  /** Counts a request as a grant, an introspection or a refusal, if it is one. */
  countOutcome(ctx: Context, route: string): void;
  /** Counts a webhook delivery attempt. */
  countAttempt(outcome: Outcome): void;
  /** Counts a request that a rate limit refused. */
  countLimited(limit: string): void;
  statementObserver: StatementObserver;
};

/** Creates the metrics of a process. */
export function createMetrics(): ProcessMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkgate_" });
  registerGauge(registry, { name: "linkgate_processes", help: "Processes that serve requests" }, () => 1);
  const countAttempt = registerCounter(registry, {
    name: "linkgate_webhook_attempts_total",
    help: "Webhook delivery attempts: succeeded, retried (will be retried), failed (permanently), unsent",
    label: "outcome",
    values: ["succeeded", "retried", "failed", "unsent"],
  });
  const shared = shareMetrics(registry);

  return {
    serve(storage) {
      registerConnections(registry, storage);
      const readBacklog = createBacklogMetrics(storage.backlog);
      return async function serveMetrics(ctx, next) {
        if (ctx.path !== "/metrics") return next();
        const all = combineMetrics(await Promise.all([shared.read(), readBacklog()]));
        ctx.type = all.contentType;
        ctx.body = await all.metrics();
      };
    },

    handOver: shared.handOver,
    countRequest: createRequestMetrics(registry),
    countOutcome: createOAuthMetrics(registry),
    countLimited: registerCounter(registry, {
      name: "linkgate_rate_limited_total",
      help: "Refusals by rate limits",
      label: "limit",
    }),
    statementObserver: createStatementMetrics(registry),
    countAttempt: ({ status, isUnsent }) =>
      countAttempt(isUnsent ? "unsent" : status === "pending" ? "retried" : status),
  };
}

function registerConnections(registry: Registry, { connections }: Pick<Storage, "connections">): void {
  register(
    registry,
    {
      name: "linkgate_database_connections",
      help: "Connections to the database server, and statements that wait for one; absent on SQLite",
      type: "gauge",
    },
    () => {
      const pool = connections();
      if (!pool) return [];
      const { inUse, idle, waiting } = pool;
      return Object.entries({ in_use: inUse, idle, waiting }).map(([state, value]) => ({
        value,
        labels: { state },
      }));
    },
  );
  registerGauge(
    registry,
    { name: "linkgate_database_connections_max", help: "The most connections to the database server" },
    () => connections()?.max,
  );
}
