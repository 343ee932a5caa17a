import type { Context, Middleware } from "koa";
import type { ReadClickSource } from "./click-source.ts";
import type { LinkPreview, LinkService } from "./service.ts";

const SLUG_PATH = /^\/([A-Za-z0-9_-]{1,64})\/?$/;
// RFC 3986 §2.2: an encoded + isn't the same as a plain one, but some programs encode it when they send a URL.
const PREVIEW_PATH = /^\/([A-Za-z0-9_-]{1,64})(?:\+|%2B)$/i;

// Redirects don't need these. Our referrer and opener policies would hide the referring page, which a link reveals.
const PAGE_HEADERS = [
  "X-Frame-Options",
  "Referrer-Policy",
  "Cross-Origin-Opener-Policy",
  "Content-Security-Policy",
];

export type RenderPreview = (preview: LinkPreview) => string;
export type RenderErrorPage = (status: number, detail: string) => string;

export function createRedirects(
  links: Pick<LinkService, "follow" | "preview" | "isReserved">,
  readClickSource: ReadClickSource,
  shortUrl: string,
  renderPreview: RenderPreview,
) {
  const { host } = new URL(shortUrl);

  /** Returns the slug in a path, unless it is reserved. */
  function slugIn(path: string, pattern = SLUG_PATH): string | undefined {
    const slug = pattern.exec(path)?.[1];
    return slug === undefined || links.isReserved(slug) ? undefined : slug;
  }

  return {
    isShortLink: (ctx: Context) => slugIn(ctx.path) !== undefined && ctx.host === host,
    isPreview: (ctx: Context) => slugIn(ctx.path, PREVIEW_PATH) !== undefined && ctx.host === host,

    /** Redirects a short link to its destination. GET counts as a click, HEAD doesn't. */
    async followLink(ctx: Context): Promise<void> {
      const source = ctx.method === "GET" ? readClickSource(ctx.req) : undefined;
      // The path is known to match, and this is the most frequent request.
      const slug = ctx.path.slice(1, ctx.path.endsWith("/") ? -1 : undefined);
      const { status, location } = await links.follow(slug, source);
      ctx.status = status;
      for (const name of PAGE_HEADERS) ctx.remove(name);
      ctx.set("Location", location);
      // A permanent redirect cached by a browser would no longer be counted, and couldn't be changed.
      ctx.set("Cache-Control", "private, no-store");
      ctx.set("X-Robots-Tag", "noindex");
      ctx.body = "";
      ctx.remove("Content-Type");
    },

    /** Shows where a short link leads, without following it. */
    async showPreview(ctx: Context): Promise<void> {
      const preview = await links.preview(slugIn(ctx.path, PREVIEW_PATH) as string);
      ctx.set("Cache-Control", "no-store");
      ctx.set("X-Robots-Tag", "noindex");
      ctx.type = "html";
      ctx.body = renderPreview(preview);
    },
  };
}

/** Replaces the errors of short links with pages in browsers. */
export function showErrorPages(renderPage: RenderErrorPage): Middleware {
  return async function showErrorPage(ctx, next) {
    await next();
    if (ctx.status < 400) return;
    // RFC 9110 §15.5.5 and §15.5.11: a 404 and a 410 are cacheable, but a link may be created or restored.
    ctx.set("Cache-Control", "no-store");
    ctx.vary("Accept");
    if (ctx.accepts("json", "html") === "html") {
      const { detail } = ctx.body as { detail: string };
      ctx.body = renderPage(ctx.status, detail);
      ctx.type = "html";
    }
  };
}
