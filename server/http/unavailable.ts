import type { Context } from "koa";
import { RETRY_AFTER_S } from "../../resources/http/unavailable.ts";
import { messagePage } from "../ui/page.ts";

/** Responds with 503 and `Retry-After` (RFC 9110 §15.6.4). Also for errors that oidc-provider has caught. */
export function respondUnavailable(ctx: Context): void {
  ctx.status = 503;
  ctx.set("Retry-After", String(RETRY_AFTER_S));
  if (ctx.accepts("json", "html") === "html") {
    ctx.type = "html";
    ctx.body = messagePage("Please try again", "The service is temporarily unavailable.");
    return;
  }
  ctx.body = {
    error: "temporarily_unavailable",
    error_description: "the service is temporarily unavailable, try again",
  };
}
