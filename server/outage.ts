import type { Context, Middleware } from "koa";
import { messagePage } from "./views/page.ts";

/** Seconds until it is worth trying again. */
export const RETRY_AFTER_S = 2;

/** Whether something that we depend on is away, which is not a defect of ours. */
export function isOutage(error: unknown): boolean {
  return ["StorageUnavailable", "IntrospectionUnavailable"].includes((error as Error)?.name);
}

/** Tells callers of pages and OAuth endpoints to come back: 503 with `Retry-After` (RFC 9110 §15.6.4). */
export function explainOutages(onOutage: (error: unknown, ctx: Context) => void): Middleware {
  return async function explainOutage(ctx, next) {
    try {
      await next();
    } catch (error) {
      if (!isOutage(error)) throw error;
      onOutage(error, ctx);
      answerOutage(ctx);
    }
  };
}

/** The answer itself, also for what oidc-provider has caught already. */
export function answerOutage(ctx: Context): void {
  ctx.status = 503;
  ctx.set("Retry-After", String(RETRY_AFTER_S));
  if (ctx.accepts("json", "html") === "html") {
    ctx.type = "html";
    ctx.body = messagePage("Please try again", "The service cannot answer for the moment.");
    return;
  }
  ctx.body = {
    error: "temporarily_unavailable",
    error_description: "the service cannot answer for the moment: try again",
  };
}
