import type { Context, Next } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Backlog } from "../../adapters/backlog.ts";
import { ERROR_KINDS, errorKindOf } from "../../adapters/database/errors.ts";
import { OPERATIONS, type StatementObserver } from "../../adapters/database/statement-observer.ts";
import type { Storage } from "../../adapters/index.ts";
import { DEVICE_GRANT, JWT_BEARER_GRANT } from "../../adapters/oauth/oidc/clients.ts";
import type { Outcome } from "../../resources/webhooks/types.ts";
import type { Log } from "../log.ts";
import { endpointsByPath } from "../oauth-endpoints.ts";
import { createDegradedStates, type DegradedStates } from "./degraded.ts";
import {
  combineMetrics,
  type Metrics,
  readOwnMetrics,
  registerCount,
  registerLostLines,
  resultWithin,
  shareMetrics,
} from "./worker-metrics.ts";

declare module "koa" {
  interface DefaultState {
    /** The response of an authorization request may contain the code only as text. */
    authorizationError?: string;
  }
}

export type ProcessMetrics = ReturnType<typeof createMetrics>;

export function createMetrics(log: Pick<Log, "loss" | "error" | "info">) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: "linkgate_" });
  registerGauge(registry, { name: "linkgate_processes", help: "Processes that serve requests" }, () => 1);
  registerLostLines(registry, log);
  const attempts = new Counter({
    name: "linkgate_webhook_attempts_total",
    help: "Webhook delivery attempts: succeeded, retried (will be retried), failed (permanently), unsent",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of ["succeeded", "retried", "failed", "unsent"]) attempts.inc({ outcome }, 0);
  const limited = new Counter({
    name: "linkgate_rate_limited_total",
    help: "Refusals by rate limits",
    labelNames: ["limit"],
    registers: [registry],
  });
  const degraded = createDegradedStates(log);
  const help = "Whether the process is in a degraded state: database, read_only, disk_full, redis";
  const options = { name: "linkgate_degraded", help, label: "state", aggregator: "max" } as const;
  registerGauge(registry, options, degraded.values);
  const shared = shareMetrics(registry);

  return {
    /** Adds what is read from the database, and serves `/metrics` of all workers. */
    serve(storage: Pick<Storage, "backlog" | "connections" | "droppedClicks">) {
      registerConnections(registry, storage);
      const help = "Clicks that were not counted, because too many waited for the database";
      registerCount(registry, "linkgate_clicks_dropped_total", help, storage.droppedClicks);
      const readBacklog = createBacklogMetrics(storage.backlog);
      return async function serveMetrics(ctx: Context, next: Next): Promise<void> {
        if (ctx.path !== "/metrics") return next();
        const all = combineMetrics(await Promise.all([shared.read(), readBacklog()]));
        ctx.type = all.contentType;
        ctx.body = await all.metrics();
      };
    },

    handOver: shared.handOver,
    countRequest: createRequestMetrics(registry),
    countOutcome: createOAuthMetrics(registry),
    countLimited: (limit: string) => limited.inc({ limit }),
    degraded,
    statementObserver: createStatementMetrics(registry, degraded),
    countAttempt: ({ status, isUnsent }: Outcome) =>
      attempts.inc({ outcome: isUnsent ? "unsent" : status === "pending" ? "retried" : status }),
  };
}

type GaugeOptions = { name: string; help: string; label?: string | undefined; aggregator?: "max" };
type Read = () => number | Record<string, number> | undefined;

/** Has a sample for each value of a label, or one without a label; none while `read` returns nothing. */
function registerGauge(registry: Registry, { label, ...options }: GaugeOptions, read: Read): void {
  new Gauge({
    ...options,
    labelNames: label ? [label] : [],
    registers: [registry],
    collect() {
      const value = read();
      if (label) {
        this.reset();
        for (const [key, each] of Object.entries(value ?? {})) this.set({ [label]: key }, each);
      } else if (typeof value === "number" && Number.isFinite(value)) this.set(value);
      else this.remove();
    },
  });
}

function registerConnections(registry: Registry, { connections }: Pick<Storage, "connections">): void {
  registerGauge(
    registry,
    {
      name: "linkgate_database_connections",
      help: "Connections to the database server, and statements that wait for one; absent on SQLite",
      label: "state",
    },
    () => {
      const pool = connections();
      return pool && { in_use: pool.inUse, idle: pool.idle, waiting: pool.waiting };
    },
  );
  registerGauge(
    registry,
    { name: "linkgate_database_connections_max", help: "The most connections to the database server" },
    () => connections()?.max,
  );
}

// Prometheus waits for 10 s by default.
const BACKLOG_MS = 3000;

/** While the database doesn't answer in time, `linkgate_database_up` is 0. Concurrent calls share the queries. */
function createBacklogMetrics(readBacklog: () => Promise<Backlog>): () => Promise<Metrics> {
  const registry = new Registry();
  let backlog: Backlog | undefined;
  let reading: Promise<Backlog | undefined> | undefined;

  const gauge = (name: string, help: string, read: Read, label?: string) =>
    registerGauge(registry, { name, help, label, aggregator: "max" }, read);
  const ofBoth = (field: "count" | "seconds") => () =>
    backlog && { webhook: backlog.deliveries[field], email: backlog.mails[field] };
  gauge("linkgate_database_up", "Whether the database answers", () => Number(backlog !== undefined));
  gauge(
    "linkgate_outbox_due",
    "Webhook deliveries and emails that are due, up to 10,000",
    ofBoth("count"),
    "kind",
  );
  gauge(
    "linkgate_outbox_oldest_due_seconds",
    "How long the oldest due webhook delivery or email has waited",
    ofBoth("seconds"),
    "kind",
  );
  gauge(
    "linkgate_purge_lag_seconds",
    "How long the oldest expired row has waited for the purge",
    () => backlog?.purgeSeconds,
  );
  gauge(
    "linkgate_clock_ahead_seconds",
    "How far the clock of the server is ahead of the database's",
    () => backlog?.clockAheadSeconds,
  );

  return async function readMetrics() {
    reading ??= readBacklog()
      .catch(() => undefined) // it is counted, and requests that need the database log theirs
      .finally(() => {
        reading = undefined;
      });
    backlog = await resultWithin(BACKLOG_MS, reading);
    return readOwnMetrics(registry);
  };
}

type CountedRequest = { method: string; route: string; status: number; seconds: number };

// Upper bounds in seconds.
const REQUEST_BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

function createRequestMetrics(registry: Registry): (request: CountedRequest) => void {
  const registers = [registry];
  const requests = new Counter({
    name: "linkgate_http_requests_total",
    help: "HTTP requests",
    labelNames: ["method", "route", "status"],
    registers,
  });
  const durations = new Histogram({
    name: "linkgate_http_request_duration_seconds",
    help: "Duration of HTTP requests in seconds",
    labelNames: ["route"],
    buckets: REQUEST_BOUNDS,
    registers,
  });
  return ({ seconds, ...labels }) => {
    requests.inc(labels);
    durations.observe({ route: labels.route }, seconds);
  };
}

// Upper bounds in seconds. A read of SQLite takes some microseconds.
const STATEMENT_BOUNDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];

function createStatementMetrics(registry: Registry, degraded: DegradedStates): StatementObserver {
  const durations = new Histogram({
    name: "linkgate_database_operation_duration_seconds",
    help: "Duration of database operations in seconds; acquire is the wait for a connection",
    labelNames: ["operation"],
    buckets: STATEMENT_BOUNDS,
    registers: [registry],
  });
  for (const operation of OPERATIONS) durations.zero({ operation });
  const failures = new Counter({
    name: "linkgate_database_errors_total",
    help: "Failed database operations by reason, without violated constraints",
    labelNames: ["kind"],
    registers: [registry],
  });
  for (const kind of ERROR_KINDS) failures.inc({ kind }, 0);
  // The error of a statement is also that of its transaction.
  const counted = new WeakSet<object>();
  // Whether a failure may have begun a degraded state, which a success then ends.
  let mayBeDegraded = false;

  function recordError(error: unknown) {
    const kind = errorKindOf(error);
    if (!kind || counted.has(error as object)) return;
    counted.add(error as object);
    failures.inc({ kind });
    degraded.fail(kind, error);
    mayBeDegraded = true;
  }

  return {
    begin(operation) {
      const started = performance.now();
      return (error) => {
        durations.observe({ operation }, (performance.now() - started) / 1000);
        if (error !== undefined) recordError(error);
        else if (mayBeDegraded) mayBeDegraded = !degraded.succeed(operation);
      };
    },
  };
}

const GRANTS = ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER_GRANT, DEVICE_GRANT];

type Body = { error?: unknown; code?: unknown; active?: unknown } | null | undefined;

// Other problems of the API are about the content of a request.
const REFUSALS = new Set([401, 403, 429]);

/** Returns the function that counts an answered request. */
function createOAuthMetrics(registry: Registry): (ctx: Context, route: string) => void {
  const registers = [registry];
  const grants = new Counter({
    name: "linkgate_grants_total",
    help: "Successful token requests by grant type",
    labelNames: ["grant_type"],
    registers,
  });
  for (const grant_type of GRANTS) grants.inc({ grant_type }, 0);
  const introspections = new Counter({
    name: "linkgate_introspections_total",
    help: "Introspected tokens by result",
    labelNames: ["result"],
    registers,
  });
  for (const result of ["active", "inactive"]) introspections.inc({ result }, 0);
  const refusals = new Counter({
    name: "linkgate_refusals_total",
    help: "Refused requests by endpoint and error code",
    labelNames: ["endpoint", "error"],
    registers,
  });

  return function countOutcome(ctx, route) {
    const endpoint = endpointOf(route);
    if (endpoint === undefined) return;
    const body = ctx.body as Body;
    const error = errorOf(ctx, endpoint, body);
    if (error !== undefined) refusals.inc({ endpoint, error });
    else if (endpoint === "token" && ctx.status === 200) grants.inc({ grant_type: grantTypeOf(ctx) });
    else if (endpoint === "introspection" && ctx.status === 200) {
      introspections.inc({ result: body?.active === true ? "active" : "inactive" });
    }
  };
}

function endpointOf(route: string): string | undefined {
  if (route.startsWith("/v1/")) return "api";
  if (route === "/mcp") return "mcp";
  const endpoint = endpointsByPath.get(route.replace("/:uid", ""));
  return endpoint?.metrics === "refusals" ? endpoint.name : undefined;
}

/** Returns undefined unless a response refuses a caller. All codes are our own or those of oidc-provider. */
function errorOf(ctx: Context, endpoint: string, body: Body): string | undefined {
  if (endpoint === "authorization") return ctx.state.authorizationError;
  if (endpoint === "api" || endpoint === "mcp")
    return REFUSALS.has(ctx.status) ? textOf(body?.code) : undefined;
  return ctx.status >= 400 ? textOf(body?.error) : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "other";
}

function grantTypeOf(ctx: Context): string {
  const grantType = String((ctx as unknown as Partial<KoaContextWithOIDC>).oidc?.params?.grant_type);
  return GRANTS.includes(grantType) ? grantType : "other";
}
