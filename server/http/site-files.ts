import { readFile } from "node:fs/promises";
import type { Context, Middleware } from "koa";
import { isAt } from "../../resources/http/mount.ts";

const ICON = new URL("../ui/icon.svg", import.meta.url);
const DAY_S = 24 * 60 * 60;
// RFC 9116 §2.5.5: recommended to be less than a year ahead.
const EXPIRES_AFTER_MS = 180 * DAY_S * 1000;

// Short links may be crawled; what needs a sign-in or a token has nothing for a search engine.
const ROBOTS = `User-agent: *
Disallow: /auth/
Disallow: /dashboard
Disallow: /interaction/
Disallow: /oauth/
Disallow: /v1/
Disallow: /mcp
`;

/**
 * Serves `/favicon.ico`, `/robots.txt` and, if there is a contact, `/.well-known/security.txt` (RFC 9116).
 * @param contact a `mailto:` or `https:` URI
 */
export function siteFiles(base: string, contact: string | undefined): Middleware {
  const securityUrl = `${base}/.well-known/security.txt`;
  const isSecurityText = isAt(securityUrl);

  return async function serveSiteFile(ctx, next) {
    if (ctx.method !== "GET" && ctx.method !== "HEAD") return next();
    if (ctx.path === "/favicon.ico") {
      respond(ctx, "image/svg+xml", await readFile(ICON));
    } else if (ctx.path === "/robots.txt") {
      respond(ctx, "text/plain", ROBOTS);
    } else if (contact && isSecurityText(ctx)) {
      respond(ctx, "text/plain", securityText(contact, securityUrl));
    } else return next();
  };
}

function securityText(contact: string, url: string): string {
  const expires = new Date(Date.now() + EXPIRES_AFTER_MS).toISOString();
  return `Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\nCanonical: ${url}\n`;
}

function respond(ctx: Context, type: string, body: Buffer | string): void {
  ctx.set("Cache-Control", `public, max-age=${DAY_S}`);
  ctx.type = type;
  ctx.body = body;
}
