import type { Context, Middleware } from "koa";
import { isAt, requireRead } from "../../resources/http/routing.ts";
import { ASSETS } from "../ui/asset-files.ts";

const DAY_S = 24 * 60 * 60;
const YEAR_S = 365 * DAY_S;

/** The content of an address with its version never changes. Any other address, such as of a newer release, is not kept. */
export const assets: Middleware = async function serveAsset(ctx, next) {
  const asset = ASSETS.get(ctx.path);
  if (!asset) return next();
  const isCurrent = ctx.path + ctx.search === asset.address;
  ctx.set("Cache-Control", isCurrent ? `public, max-age=${YEAR_S}, immutable` : "public, no-cache");
  ctx.type = asset.type;
  ctx.body = asset.body;
};

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

export function siteFiles(base: string, contact: string | undefined): Middleware {
  const securityUrl = `${base}/.well-known/security.txt`;
  const isSecurityText = isAt(securityUrl);
  function findFile(ctx: Context): { type: string; body: Buffer | string } | undefined {
    if (ctx.path === "/favicon.ico") return ASSETS.get("/assets/icon.svg");
    if (ctx.path === "/robots.txt") return { type: "text/plain", body: ROBOTS };
    if (!contact || !isSecurityText(ctx)) return undefined;
    return { type: "text/plain", body: securityText(contact, securityUrl) };
  }
  return async function serveSiteFile(ctx, next) {
    const file = findFile(ctx);
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
