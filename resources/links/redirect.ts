import type { Context, Middleware } from "koa";
import { Problem } from "../problem.ts";
import type { Links } from "./links.ts";
import type { ReadVisit } from "./visit.ts";

// One segment that can be a slug; whatever else is asked for is none of our business.
const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

/** Whether a request is for a short link, on the host where they live. Reserved words are left to others. */
export function isShortLink(shortUrl: string, links: Links): (ctx: Context) => boolean {
  const { host } = new URL(shortUrl);
  return (ctx) => {
    const slug = slugOf(ctx);
    return slug !== undefined && !links.isReserved(slug) && ctx.host.toLowerCase() === host;
  };
}

/** Follows a short link. GET counts, HEAD only looks. */
export function followLink(links: Links, readVisit: ReadVisit): Middleware {
  return async function follow(ctx) {
    const visit = ctx.method === "GET" ? readVisit(ctx) : undefined;
    const { status, location } = await links.follow(ctx.path.slice(1), visit);
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

function slugOf({ path }: Context): string | undefined {
  return SLUG_PATH.exec(path)?.[1];
}
