import type { Context, Middleware } from "koa";
import type { ReadClickSource } from "./click-source.ts";
import type { LinkService } from "./service.ts";

/** The redirects of short links. */
export type Redirects = {
  /** Matches requests for short links: on their host, and outside the reserved paths of the service. */
  isShortLink(ctx: Context): boolean;
  /** Returns whether a path is outside the reserved paths, and can be a short link's. */
  isSlugPath(path: string): boolean;
  /** Redirects a short link to its destination. GET counts as a click, HEAD doesn't. */
  followLink: Middleware;
};

// A single path segment that can be a slug.
const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

/**
 * The headers of pages that a redirect doesn't need. Our referrer and opener policies would hide the referring page,
 * which an ordinary link reveals.
 */
const PAGE_HEADERS = [
  "X-Frame-Options",
  "Referrer-Policy",
  "Cross-Origin-Opener-Policy",
  "Content-Security-Policy",
];

/** Creates the redirects of the links below a URL. */
export function createRedirects(
  links: Pick<LinkService, "follow" | "isReserved">,
  readClickSource: ReadClickSource,
  shortUrl: string,
): Redirects {
  const { host } = new URL(shortUrl);

  function isSlugPath(path: string): boolean {
    const slug = SLUG_PATH.exec(path)?.[1];
    return slug !== undefined && !links.isReserved(slug);
  }

  return {
    isSlugPath,
    isShortLink: (ctx) => isSlugPath(ctx.path) && ctx.host.toLowerCase() === host,

    async followLink(ctx) {
      const source = ctx.method === "GET" ? readClickSource(ctx.req) : undefined;
      const { status, location } = await links.follow(ctx.path.slice(1), source);
      ctx.status = status;
      for (const name of PAGE_HEADERS) ctx.remove(name);
      ctx.set("Location", location);
      // A permanent redirect cached by a browser would no longer be counted, and couldn't be changed.
      ctx.set("Cache-Control", "private, no-store");
      ctx.set("X-Robots-Tag", "noindex");
      ctx.body = "";
      ctx.remove("Content-Type");
    },
  };
}
