import type { Context, Next } from "koa";
import type { KoaContextWithOIDC } from "oidc-provider";
import { isAt, mount, requireRead } from "../../resources/http/routing.ts";
import { HOST_MAX, toHost } from "../../resources/links/rules.ts";
import type { Dependencies } from "../dependencies.ts";
import { forwardedFor } from "../http/client-ip.ts";
import { isText } from "../log-output.ts";
import { ENDPOINT_LIST, METADATA_PATHS } from "../oauth-endpoints.ts";
import {
  createReadiness,
  isOperator,
  type OperatorAccess,
  type ReadinessReport,
  readClockAhead,
  respondReady,
} from "./health.ts";

// An allowlist, because each label stays in memory and callers could request any number of paths.
const FIXED_ROUTES = new Set([
  "/",
  ...ENDPOINT_LIST.filter(({ metrics }) => metrics).map(({ path }) => path),
  ...METADATA_PATHS,
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/v1",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-protected-resource/mcp/",
  "/v1/openapi.json",
  "/openapi.json",
  "/docs",
  "/llms.txt",
  "/client.tgz",
  "/favicon.ico",
  "/robots.txt",
  "/.well-known/security.txt",
]);

const FIRST_ERROR = 400;
const DOMAIN_PROBE = "/healthz/domain";

export function createObservability({ settings, urls, storage, metrics, tracing, log }: Dependencies) {
  const { ACCESS_LOG_SAMPLE, LOG_FORMAT, METRICS_PORT, METRICS_TOKEN, TRUST_PROXY } = settings;
  const isForPeople = isText(LOG_FORMAT);
  const operatorAccess = { publicHost: new URL(urls.base).host, token: METRICS_TOKEN };
  const serveMetrics = metrics.serve(storage);
  const readiness = createReadiness(storage, log);
  const ownPort = METRICS_PORT === undefined ? ["/metrics", DOMAIN_PROBE] : [];
  const probePaths = new Set(["/healthz", "/readyz", ...ownPort]);
  const isProbe = ({ path }: Context) => probePaths.has(path);
  const isMcp = [urls.mcp, urls.mcpRead].flatMap((url) => [url, `${url}/`]).map(isAt);
  let isStopping = false;

  /** Returns the route pattern, never the path itself, which may contain a secret. */
  function routeOf(ctx: Context): string {
    if (typeof ctx._matchedRoute === "string") return ctx._matchedRoute;
    if (isMcp.some((matches) => matches(ctx))) return "/mcp";
    if (FIXED_ROUTES.has(ctx.path)) return ctx.path;
    if (ctx.path.startsWith("/docs/")) return "/docs/:path";
    return /^\/[^/]+\/?$/.test(ctx.path) ? "/:slug" : "other";
  }

  function record(ctx: Context, started: number) {
    const { method, status } = ctx;
    const { requestId } = ctx.state;
    const route = routeOf(ctx);
    const seconds = (performance.now() - started) / 1000;
    metrics.countRequest({ method, route, status, seconds });
    tracing?.describeRequest({ requestId, method, route, status });
    if (!log.isLevelEnabled("info") || !isSampled(status, ACCESS_LOG_SAMPLE)) return;
    const ms = Math.round(seconds * 1e6) / 1e3;
    const described = isForPeople ? describeForPeople(ctx, route) : identifiersOf(ctx);
    log.info({ request_id: requestId, method, route, status, ms, ...described }, "request");
  }

  function reportTo(ctx: Context): ReadinessReport {
    const request = { trust_proxy: TRUST_PROXY, address: ctx.ip, forwarded_for: forwardedFor(ctx.req) };
    return {
      log: log.loss(),
      /** Without `clock_ahead_s`, the database didn't answer. */
      async readDetails() {
        const clock = await readClockAhead(storage);
        return { pid: process.pid, ...(clock !== undefined && { clock_ahead_s: clock }), request };
      },
    };
  }

  /** Tells a proxy whether it may request a certificate for a host. */
  async function probeDomain(ctx: Context): Promise<void> {
    // Caddy adds `domain`.
    const { name = ctx.query.domain } = ctx.query;
    const isHost = typeof name === "string" && name.length <= HOST_MAX;
    const isVerified = isHost && (await storage.domains.resolve(toHost(name))) !== undefined;
    ctx.status = isVerified ? 200 : 404;
    ctx.set("Cache-Control", "no-store");
    ctx.body = { status: isVerified ? "verified" : "unknown" };
  }

  return {
    /** For `METRICS_PORT`. */
    metrics: (ctx: Context, next: Next) =>
      ctx.path === DOMAIN_PROBE ? requireRead(ctx, () => probeDomain(ctx)) : serveMetrics(ctx, next),

    /** Makes `/healthz` and `/readyz` fail from now on. */
    announceStop(): void {
      isStopping = true;
    },

    probes: mount(isProbe, [
      requireRead,
      async function probe(ctx, next) {
        if (ctx.path === "/healthz") {
          ctx.status = isStopping ? 503 : 200;
          ctx.body = { status: isStopping ? "stopping" : "ok" };
          return;
        }
        if (ctx.path === DOMAIN_PROBE) return probeDomain(ctx);
        const isTrusted = isOperator(ctx, operatorAccess);
        if (ctx.path === "/readyz") {
          const state = isStopping ? "stopping" : await readiness();
          return respondReady(ctx, state, isTrusted ? reportTo(ctx) : undefined);
        }
        return isTrusted ? serveMetrics(ctx, next) : rejectReader(ctx, operatorAccess);
      },
    ]),

    async countOutcome(ctx: Context, next: Next): Promise<void> {
      await next();
      metrics.countOutcome(ctx, routeOf(ctx));
    },

    async observe(ctx: Context, next: Next): Promise<void> {
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

function isSampled(status: number, share: number): boolean {
  return status >= FIRST_ERROR || share >= 1 || Math.random() < share;
}

function rejectReader(ctx: Context, { token }: OperatorAccess): void {
  ctx.status = token === undefined ? 403 : 401;
  ctx.set("Cache-Control", "no-store");
  if (token !== undefined) ctx.set("WWW-Authenticate", 'Bearer realm="metrics"');
  ctx.body = {
    error: "access_denied",
    error_description:
      "metrics are served to this machine, on METRICS_PORT, or with METRICS_TOKEN as bearer token",
  };
}

// An allowlist: other parameters of a path are tokens, such as that of a password reset.
const HARMLESS = /^:(slug|path|plan|view|(\w+_)?id)$/;
// What a user may paste into the address bar by mistake.
const CREDENTIAL = /(lg[sar]_|whsec_)/;

/** Returns the path without its query, and the user or client. Paths that may contain a credential become the route. */
function describeForPeople(ctx: Context, route: string): { path: string; who?: string } {
  const { client_id, user_id } = identifiersOf(ctx);
  const who = ctx.state.user?.username ?? user_id ?? client_id;
  return { path: isHarmless(ctx.path, route) ? ctx.path : route, ...(who && { who }) };
}

function isHarmless(path: string, route: string): boolean {
  const parameters = route.split("/").filter((segment) => segment.startsWith(":"));
  return route !== "other" && parameters.every((name) => HARMLESS.test(name)) && !CREDENTIAL.test(path);
}

/** Returns what relates a request to others and to the audit log, as far as it is known. */
function identifiersOf(ctx: Context) {
  const { caller, user, membership } = ctx.state;
  const { client, account } = (ctx as Partial<KoaContextWithOIDC>).oidc ?? {};
  return {
    address: ctx.ip,
    client_id: caller?.clientId ?? client?.clientId,
    user_id: caller?.userId ?? user?.id ?? account?.accountId,
    organization_id: caller?.organizationId ?? membership?.id,
  };
}
