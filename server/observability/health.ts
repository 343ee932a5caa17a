import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/problem.ts";
import { parseIpAddress } from "../http/client-ip.ts";
import type { Log } from "../log.ts";
import type { LogLoss } from "../log-output.ts";
import { resultWithin } from "./worker-metrics.ts";

export type RequestReport = { trust_proxy: number; address: string; forwarded_for: string[] };

/** What operators see. */
export type ReadinessReport = { log: LogLoss; readDetails(): Promise<{ request: RequestReport }> };

/** `read_only`: the database has been read-only since the process started. Later, reads are still served. */
export type Readiness = "ready" | "stopping" | "not migrated" | "no database" | "read_only";

/** Responds 200 or 503. Without `report`, the caller doesn't learn why the process isn't ready. */
export async function respondReady(
  ctx: Context,
  readiness: Readiness,
  report?: ReadinessReport,
): Promise<void> {
  const isReady = readiness === "ready";
  ctx.status = isReady ? 200 : 503;
  ctx.set("Cache-Control", "no-store");
  if (readiness === "no database" || readiness === "read_only") ctx.set("Retry-After", String(RETRY_AFTER_S));
  ctx.body = {
    status: isReady || report ? readiness : "unavailable",
    // A service that can't log still serves requests, so it is ready.
    ...(report && report.log.lines > 0 && { log: { lost_lines: report.log.lines, error: report.log.error } }),
    ...(report && ctx.query.verbose !== undefined && (await report.readDetails())),
  };
}

// Load balancers wait for a few seconds at most, and a database that takes longer serves no requests.
const CHECK_MS = 2000;

/** Concurrent calls share one check, so anonymous requests cannot load the database with more than one at a time. */
export function createReadiness(storage: Storage, log: Log): () => Promise<Readiness> {
  let check: Promise<Readiness | undefined> | undefined;
  let wasWritable = false;

  async function checkDatabase(): Promise<Readiness> {
    try {
      const pending = await storage.pendingMigrations();
      if (pending.length > 0) return "not migrated";
      wasWritable ||= await storage.isWritable();
      return wasWritable ? "ready" : "read_only";
    } catch (error) {
      log.error({ err: error }, "database unavailable");
      return "no database";
    }
  }

  return async () => {
    const result = () => checkDatabase().finally(() => (check = undefined));
    check ??= resultWithin(CHECK_MS, result());
    return (await check) ?? "no database";
  };
}

/** In seconds; undefined if the database doesn't answer in time. */
export function readClockAhead({ clockAhead }: Pick<Storage, "clockAhead">): Promise<number | undefined> {
  return resultWithin(CHECK_MS, clockAhead()).catch(() => undefined);
}

// What a proxy adds to the requests that it passes on.
const PROXY_HEADER = /^(forwarded|x-forwarded-.+|x-real-ip|via)$/;
const BEARER = /^bearer +(\S+)$/i;

export type OperatorAccess = { publicHost: string; token?: string | undefined };

/** A request for another host came through a proxy, which may pass on any name, with a port or a final dot. */
export function isOperator(ctx: Context, { publicHost, token }: OperatorAccess): boolean {
  return isLocal(ctx, publicHost) || (token !== undefined && hasToken(ctx, token));
}

function isLocal(ctx: Context, publicHost: string): boolean {
  if (Object.keys(ctx.headers).some((name) => PROXY_HEADER.test(name))) return false;
  if (!isLoopback(ctx.req.socket.remoteAddress ?? "")) return false;
  return isLoopbackHost(publicHost) || isLoopbackHost(ctx.get("host"));
}

function isLoopback(address: string): boolean {
  const ip = parseIpAddress(address);
  return ip?.version === 4 ? ip.parts[0] === 127 : ip?.text === "::1";
}

function isLoopbackHost(host: string): boolean {
  const hostname = URL.parse(`http://${host}`)?.hostname ?? "";
  return hostname === "localhost" || isLoopback(hostname.replace(/^\[|\]$/g, ""));
}

function hasToken(ctx: Context, token: string): boolean {
  const [, sent = ""] = BEARER.exec(ctx.get("authorization")) ?? [];
  return timingSafeEqual(digest(sent), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
