import type { Context } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/unavailable.ts";
import type { Log } from "../log.ts";
import { endsWithin } from "./ends-within.ts";

/** What a process tells an operator. */
export type ProcessReport = {
  pid: number;
  /** How many seconds the clock of this machine is ahead of the database's; absent if the database doesn't answer. */
  clock_ahead_s?: number;
  request: RequestReport;
};

/** How a request reached the process. */
export type RequestReport = {
  /** The number of proxies that `TRUST_PROXY` names. */
  trust_proxy: number;
  /** The address that counts as the caller's. */
  address: string;
  /** The addresses in `X-Forwarded-For`. */
  forwarded_for: string[];
};

/** Whether a process can answer requests, and why not. */
export type Readiness = "ready" | "stopping" | "not migrated" | "no database";

/** Responds to `/healthz`: the process can respond. */
export function respondLive(ctx: Context): void {
  ctx.body = { status: "ok" };
}

/**
 * Responds to `/readyz` with 200 or 503.
 * @param report what to tell an operator with `?verbose`; without it, the caller isn't an operator and doesn't learn
 *   why the process isn't ready
 */
export async function respondReady(
  ctx: Context,
  readiness: Readiness,
  report?: () => Promise<ProcessReport>,
): Promise<void> {
  const isReady = readiness === "ready";
  ctx.status = isReady ? 200 : 503;
  ctx.set("Cache-Control", "no-store");
  if (readiness === "no database") ctx.set("Retry-After", String(RETRY_AFTER_S));
  ctx.body = {
    status: isReady || report ? readiness : "unavailable",
    ...(report && ctx.query.verbose !== undefined && (await report())),
  };
}

// Load balancers wait for a few seconds at most, and a database that takes longer serves no requests.
const CHECK_MS = 2000;

/**
 * Returns a function that checks whether the database is reachable and migrated, within two seconds. Concurrent calls share
 * one check, so anonymous requests cannot load the database with more than one at a time.
 */
export function createReadiness(storage: Storage, log: Log): () => Promise<Readiness> {
  let check: { end: number; result: Promise<Readiness> } | undefined;
  return async () => {
    check ??= {
      end: performance.now() + CHECK_MS,
      result: checkDatabase(storage, log).finally(() => {
        check = undefined;
      }),
    };
    const { end, result } = check;
    return (await endsWithin(Math.max(0, end - performance.now()), result)) ? result : "no database";
  };
}

/** Returns how many seconds this machine's clock is ahead of the database's; undefined if it doesn't answer in time. */
export async function readClockAhead({
  clockAhead,
}: Pick<Storage, "clockAhead">): Promise<number | undefined> {
  const ahead = clockAhead();
  const isKnown = await endsWithin(CHECK_MS, ahead).catch(() => false);
  ahead.catch(() => {});
  return isKnown ? ahead : undefined;
}

async function checkDatabase(storage: Storage, log: Log): Promise<Readiness> {
  try {
    const pending = await storage.pendingMigrations();
    return pending.length ? "not migrated" : "ready";
  } catch (error) {
    log.error({ err: error }, "database unavailable");
    return "no database";
  }
}
