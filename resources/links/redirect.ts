import type { IncomingMessage } from "node:http";
import type { Context, Middleware } from "koa";
import { Problem } from "../http/problem.ts";
import type { ReadClickSource } from "./click-source.ts";
import type { LinkService } from "./service.ts";

/** Where a short link leads. `location` is ASCII. */
export type Redirect = { status: number; location: string };

/** The redirects of short links. */
export type Redirects = {
  /** Matches requests for short links: on their host, and outside the reserved paths of the service. */
  isShortLink(ctx: Context): boolean;
  /** Redirects a short link to its destination. GET counts as a click, HEAD doesn't. */
  followLink: Middleware;
  /**
   * Follows the short link of an ordinary request, without the middleware. Returns undefined for every other request.
   * If it rejects, the request must be passed to `followLink`, which responds with the error and doesn't count it again.
   */
  followPlain(request: IncomingMessage): Promise<Redirect> | undefined;
};

// A single path segment that can be a slug.
const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})$/;

/**
 * The headers of pages that a redirect doesn't need. With a referrer or opener policy of this service, the destination
 * would see less of the page with the link than it does with any other link.
 */
export const PAGE_HEADERS: ReadonlySet<string> = new Set([
  "X-Frame-Options",
  "Referrer-Policy",
  "Cross-Origin-Opener-Policy",
  "Content-Security-Policy",
]);

/** Creates the redirects of the links below a URL. */
export function createRedirects(
  links: Pick<LinkService, "follow" | "isReserved">,
  readClickSource: ReadClickSource,
  shortUrl: string,
): Redirects {
  const { host } = new URL(shortUrl);
  const followed = new WeakMap<IncomingMessage, Promise<Redirect>>();

  function follow(request: IncomingMessage, slug: string): Promise<Redirect> {
    return links.follow(slug, request.method === "GET" ? readClickSource(request) : undefined);
  }

  return {
    isShortLink(ctx) {
      const slug = SLUG_PATH.exec(ctx.path)?.[1];
      return slug !== undefined && !links.isReserved(slug) && ctx.host.toLowerCase() === host;
    },

    async followLink(ctx) {
      const { status, location } = await (followed.get(ctx.req) ?? follow(ctx.req, ctx.path.slice(1)));
      if (ctx.method !== "GET" && ctx.method !== "HEAD") {
        throw new Problem(405, "method_not_allowed", "Allowed methods: GET, HEAD.", {
          headers: { Allow: "GET, HEAD" },
        });
      }
      ctx.status = status;
      for (const name of PAGE_HEADERS) ctx.remove(name);
      for (const [name, value] of redirectHeaders(location)) ctx.set(name, value);
      ctx.body = "";
      ctx.remove("Content-Type");
    },

    followPlain(request) {
      if (!isPlain(request, host)) return undefined;
      const slug = SLUG_PATH.exec(request.url as string)?.[1];
      if (slug === undefined || links.isReserved(slug)) return undefined;
      const redirect = follow(request, slug);
      redirect.catch(() => followed.set(request, redirect));
      return redirect;
    },
  };
}

/** Returns the headers of a redirect, in the order in which they are sent. */
export function redirectHeaders(location: string): [name: string, value: string][] {
  return [
    ["Location", location],
    // A permanent redirect cached by a browser would no longer be counted, and couldn't be changed.
    ["Cache-Control", "private, no-store"],
    ["X-Robots-Tag", "noindex"],
  ];
}

/** Returns whether a request is a GET over HTTP/1.1 for this host without a body. */
function isPlain({ method, httpVersion, headers }: IncomingMessage, host: string): boolean {
  return (
    method === "GET" &&
    httpVersion === "1.1" &&
    headers.host === host &&
    headers["content-length"] === undefined &&
    headers["transfer-encoding"] === undefined
  );
}
