import type { Context } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/unavailable.ts";
import type { Log } from "../log.ts";

/** Whether a process can answer requests, and why not. */
export type Readiness = "ready" | "stopping" | "not migrated" | "no database";

/** Responds to `/healthz`: the process can respond. */
export function respondLive(ctx: Context): void {
  ctx.body = { status: "ok" };
}

/** Responds to `/readyz` with 200 or 503. @param isOperator whether to say why the process isn't ready */
export function respondReady(ctx: Context, readiness: Readiness, isOperator: boolean): void {
  const isReady = readiness === "ready";
  ctx.status = isReady ? 200 : 503;
  ctx.set("Cache-Control", "no-store");
  if (readiness === "no database") ctx.set("Retry-After", String(RETRY_AFTER_S));
  ctx.body = { status: isReady || isOperator ? readiness : "unavailable" };
}

/**
 * Returns a function that checks whether the database is reachable and migrated. Concurrent calls share one check, so
 * anonymous requests cannot load the database with more than one at a time.
 */
export function createReadiness(storage: Storage, log: Log): () => Promise<Readiness> {
  let check: Promise<Readiness> | undefined;
  return () => {
    check ??= checkDatabase(storage, log).finally(() => {
      check = undefined;
    });
    return check;
  };
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
