import type { Middleware } from "koa";
import { Problem } from "../problem.ts";
import type { Links } from "./links.ts";

// One segment that can be a slug; whatever else is asked for is none of our business.
const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

/** Follows short links on the host where they live. GET counts, HEAD only looks. Reserved words are left to others. */
export function followLinks(links: Links, shortUrl: string): Middleware {
  const { host } = new URL(shortUrl);
  return async function followLink(ctx, next) {
    const slug = ctx.host.toLowerCase() === host ? SLUG_PATH.exec(ctx.path)?.[1] : undefined;
    if (!slug || links.isReserved(slug)) return next();
    const { status, location } = await links.follow(slug, { counts: ctx.method === "GET" });
    if (ctx.method !== "GET" && ctx.method !== "HEAD") {
      throw new Problem(405, "method_not_allowed", "Use GET or HEAD.", { headers: { Allow: "GET, HEAD" } });
    }
    ctx.status = status;
    ctx.set("Location", location);
    // A permanent redirect that a browser keeps is one that is neither counted nor changed any more.
    ctx.set("Cache-Control", "private, no-store");
    ctx.set("X-Robots-Tag", "noindex");
    // Where people come from is for the destination to see, as with any link.
    ctx.remove("Referrer-Policy");
    ctx.body = "";
  };
}
