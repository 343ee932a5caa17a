import type { Context } from "koa";
import type { Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/unavailable.ts";
import type { Log } from "../log.ts";

/** Responds to `/healthz`: the process can respond. */
export function respondLive(ctx: Context): void {
  ctx.body = { status: "ok" };
}

/** Responds to `/readyz`: 503 while the process stops, or the database is unreachable or not migrated. */
export async function respondReady(
  ctx: Context,
  { storage, log, isStopping }: { storage: Storage; log: Log; isStopping: boolean },
): Promise<void> {
  if (isStopping) {
    ctx.status = 503;
    ctx.body = { status: "stopping" };
    return;
  }
  try {
    const pending = await storage.pendingMigrations();
    ctx.status = pending.length ? 503 : 200;
    ctx.body = pending.length ? { status: "not migrated" } : { status: "ready" };
  } catch (error) {
    log.error({ err: error }, "database unavailable");
    ctx.status = 503;
    ctx.set("Retry-After", String(RETRY_AFTER_S));
    ctx.body = { status: "no database" };
  }
}
