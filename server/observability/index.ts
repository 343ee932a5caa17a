import type { IncomingMessage } from "node:http";
import type { Context, Middleware } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { mount } from "../../resources/http/mount.ts";
import { forwardedFor } from "../http/client-ip.ts";
import type { Log } from "../log.ts";
import { createReadiness, type ProcessReport, readClockAhead, respondLive, respondReady } from "./health.ts";
import type { ProcessMetrics } from "./metrics.ts";
import { isOperator, type OperatorAccess } from "./operator-access.ts";
import { routeOf } from "./route-label.ts";
import type { Tracing } from "./tracing.ts";

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
  /** Counts and logs a request that was answered without `observe`. */
  record(request: AnsweredRequest): void;
  /** Counts a request that the API answered without `observe`, if it was refused. */
  countApiAnswer(route: string, status: number, body: string): void;
  /** Makes `observe` measure a request from an earlier start, a time of `performance.now()`. */
  keepStart(request: IncomingMessage, started: number): void;
};

/** `started` is a time of `performance.now()`. */
export type AnsweredRequest = {
  requestId: string;
  method: string;
  route: string;
  status: number;
  started: number;
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
const PROBES = new Set(["/healthz", "/readyz", "/metrics"]);

/** Creates the probes, the metrics and the request log of a process. */
export function createObservability(options: ObservabilityOptions): Observability {
  const { storage, metrics, tracing, log, accessLogSample, metricsApart, operatorAccess, trustProxy } =
    options;
  const serveMetrics = metrics.serve(storage);
  const readiness = createReadiness(storage, log);
  const starts = new WeakMap<IncomingMessage, number>();
  let isStopping = false;

  function record({ requestId, method, route, status, started }: AnsweredRequest) {
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
    record,
    countApiAnswer: metrics.countApiAnswer,
    metrics: serveMetrics,
    keepStart: (request, started) => void starts.set(request, started),

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
            return respondReady(ctx, state, isTrusted ? () => reportTo(ctx) : undefined);
          }
          if (metricsApart) return next();
          return isTrusted ? serveMetrics(ctx, next) : rejectReader(ctx, operatorAccess);
        },
      ],
    ),

    async observe(ctx, next) {
      const started = starts.get(ctx.req) ?? performance.now();
      try {
        await next();
      } finally {
        const { method, status } = ctx;
        const route = routeOf(ctx);
        metrics.countOutcome(ctx, route);
        record({ requestId: ctx.state.requestId, method, route, status, started });
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
