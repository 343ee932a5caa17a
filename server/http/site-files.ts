import { readFile } from "node:fs/promises";
import type { Context, Middleware } from "koa";
import { requireRead } from "../../resources/http/methods.ts";
import { isAt } from "../../resources/http/mount.ts";

const ICON = new URL("../ui/icon.svg", import.meta.url);
type SiteFile = { type: string; body: Buffer | string };

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

  async function findFile(ctx: Context): Promise<SiteFile | undefined> {
    if (ctx.path === "/favicon.ico") return { type: "image/svg+xml", body: await readFile(ICON) };
    if (ctx.path === "/robots.txt") return { type: "text/plain", body: ROBOTS };
    if (!contact || !isSecurityText(ctx)) return undefined;
    return { type: "text/plain", body: securityText(contact, securityUrl) };
  }

  return async function serveSiteFile(ctx, next) {
    const file = await findFile(ctx);
    if (!file) return next();
    return requireRead(ctx, async () => {
      ctx.set("Cache-Control", `public, max-age=${DAY_S}`);
      ctx.type = file.type;
      ctx.body = file.body;
    });
  };
}

function securityText(contact: string, url: string): string {
  const expires = new Date(Date.now() + EXPIRES_AFTER_MS).toISOString();
  return `Contact: ${contact}\nExpires: ${expires}\nPreferred-Languages: en\nCanonical: ${url}\n`;
}
