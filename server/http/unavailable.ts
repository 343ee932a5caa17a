import type { Context } from "koa";
import { messagePage } from "./views/page.ts";

/** Seconds until it is worth trying again. */
export const RETRY_AFTER_S = 2;

const PASSING = ["StorageUnavailable", "IntrospectionUnavailable", "Busy"];

/** Whether something that we depend on is away or at its limit, which is not a defect of ours. */
export function isOutage(error: unknown): boolean {
  return PASSING.includes((error as Error)?.name);
}

/** Tells the caller to come back: 503 with `Retry-After` (RFC 9110 §15.6.4). Also for what oidc-provider has caught. */
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
