import type { Context } from "koa";
import type { ReadClickSource } from "./click-source.ts";
import type { LinkService } from "./service.ts";

const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

// Redirects don't need these. Our referrer and opener policies would hide the referring page, which a link reveals.
const PAGE_HEADERS = [
  "X-Frame-Options",
  "Referrer-Policy",
  "Cross-Origin-Opener-Policy",
  "Content-Security-Policy",
];

export function createRedirects(
  links: Pick<LinkService, "follow" | "isReserved">,
  readClickSource: ReadClickSource,
  shortUrl: string,
) {
  const { host } = new URL(shortUrl);

  /** Returns whether a path is outside the reserved paths, and can be a short link's. */
  function isSlugPath(path: string): boolean {
    const slug = SLUG_PATH.exec(path)?.[1];
    return slug !== undefined && !links.isReserved(slug);
  }

  return {
    isSlugPath,
    isShortLink: (ctx: Context) => isSlugPath(ctx.path) && ctx.host.toLowerCase() === host,

    /** Redirects a short link to its destination. GET counts as a click, HEAD doesn't. */
    async followLink(ctx: Context): Promise<void> {
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
