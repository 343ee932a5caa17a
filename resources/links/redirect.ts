import type { Context, Middleware } from "koa";
import { Problem } from "../http/problem.ts";
import type { ReadClickSource } from "./click-source.ts";
import type { LinkService } from "./service.ts";

// A single path segment that can be a slug.
const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

/** Matches requests for short links: on their host, and outside the reserved paths of the service. */
export function isShortLink(shortUrl: string, links: LinkService): (ctx: Context) => boolean {
  const { host } = new URL(shortUrl);
  return (ctx) => {
    const slug = slugOf(ctx);
    return slug !== undefined && !links.isReserved(slug) && ctx.host.toLowerCase() === host;
  };
}

/** Redirects a short link to its destination. GET counts as a click, HEAD doesn't. */
export function followLink(links: LinkService, readClickSource: ReadClickSource): Middleware {
  return async function follow(ctx) {
    const source = ctx.method === "GET" ? readClickSource(ctx) : undefined;
    const { status, location } = await links.follow(ctx.path.slice(1), source);
    if (ctx.method !== "GET" && ctx.method !== "HEAD") {
      throw new Problem(405, "method_not_allowed", "Allowed methods: GET, HEAD.", {
        headers: { Allow: "GET, HEAD" },
      });
    }
    ctx.status = status;
    ctx.set("Location", location);
    // A permanent redirect cached by a browser would no longer be counted, and couldn't be changed.
    ctx.set("Cache-Control", "private, no-store");
    ctx.set("X-Robots-Tag", "noindex");
    // The destination may see the referrer, as with any other link.
    ctx.remove("Referrer-Policy");
    ctx.body = "";
  };
}

function slugOf({ path }: Context): string | undefined {
  return SLUG_PATH.exec(path)?.[1];
}
