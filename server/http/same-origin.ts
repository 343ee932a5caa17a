import type { Context } from "koa";
import { Problem } from "../../resources/problem.ts";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request may change something. */
export function isChange({ method }: Context): boolean {
  return !SAFE.has(method);
}

/**
 * Refuses a change that a page of another site began. Our pages send no referrer, and browsers then send `Origin: null`
 * with a form: where there is `Sec-Fetch-Site`, it decides. A request with neither is no browser's: they send an origin
 * with every change (Fetch §3.2), so nobody's cookies are misused by it.
 */
export function checkOrigin(ctx: Context, own: string): void {
  const site = ctx.get("sec-fetch-site");
  const origin = ctx.get("origin") || own;
  if (site ? site === "same-origin" : origin === own) return;
  throw new Problem(403, "cross_site_request", "The request did not come from a page of this service.");
}
