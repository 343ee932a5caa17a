import type { Context } from "koa";
import { Problem } from "../../resources/http/problem.ts";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

/** Returns whether a request's method may change something. */
export function isChange({ method }: Context): boolean {
  return !SAFE.has(method);
}

/**
 * Rejects cross-site changes. `Sec-Fetch-Site` decides where there is one: the pages send no referrer, and browsers then
 * send `Origin: null` with a form. A request without either header isn't from a browser, because browsers send an origin
 * with every change (Fetch §3.2), so it can't abuse a user's cookies.
 * @throws Problem 403
 */
export function checkOrigin(ctx: Context, own: string): void {
  const site = ctx.get("sec-fetch-site");
  const origin = ctx.get("origin") || own;
  if (site ? site === "same-origin" : origin === own) return;
  throw new Problem(
    403,
    "cross_site_request",
    "This request came from another site. Open the page here and try again.",
  );
}
