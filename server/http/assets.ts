import { readFileSync } from "node:fs";
import type { Context, Middleware } from "koa";
import { isAt, requireRead } from "../../resources/http/routing.ts";
import { DASHBOARD_CSS, STYLE_CSS } from "../ui/css/index.ts";

const ICON = new URL("../ui/assets/icon.svg", import.meta.url);

const ASSETS: Record<string, { type: string; body: string | Buffer }> = {
  "/assets/style.css": { type: "text/css", body: STYLE_CSS },
  "/assets/dashboard.css": { type: "text/css", body: DASHBOARD_CSS },
  "/assets/docs.css": { type: "text/css", body: read(new URL("../docs/docs.css", import.meta.url)) },
  "/assets/docs.js": { type: "text/javascript", body: read(new URL("../docs/docs.js", import.meta.url)) },
  "/assets/search.js": {
    type: "text/javascript",
    body:
      read(new URL(import.meta.resolve("minisearch"))) + read(new URL("../docs/search.js", import.meta.url)),
  },
  "/assets/app.js": { type: "text/javascript", body: read(new URL("../ui/app.js", import.meta.url)) },
  "/assets/shortcuts.js": {
    type: "text/javascript",
    body: read(new URL("../ui/shortcuts.js", import.meta.url)),
  },
  "/assets/link-form.js": {
    type: "text/javascript",
    body: read(new URL("../ui/link-form.js", import.meta.url)),
  },
  "/assets/utm.js": { type: "text/javascript", body: read(new URL("../ui/utm.js", import.meta.url)) },
  "/assets/passkeys.js": {
    type: "text/javascript",
    body:
      read(new URL("../dist/bundle/index.umd.min.js", import.meta.resolve("@simplewebauthn/browser"))) +
      read(new URL("../ui/passkeys.js", import.meta.url)),
  },
  "/assets/icon.svg": { type: "image/svg+xml", body: read(ICON) },
  "/assets/icons.svg": {
    type: "image/svg+xml",
    body: read(new URL("../ui/assets/icons.svg", import.meta.url)),
  },
  "/assets/inter.woff2": {
    type: "font/woff2",
    body: readFileSync(new URL("../ui/assets/inter.woff2", import.meta.url)),
  },
};

export const assets: Middleware = async function serveAsset(ctx, next) {
  const asset = ASSETS[ctx.path];
  if (!asset) return next();
  ctx.set("Cache-Control", "public, max-age=3600");
  ctx.type = asset.type;
  ctx.body = asset.body;
};

function read(file: URL): string {
  return readFileSync(file, "utf8");
}

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

export function siteFiles(base: string, contact: string | undefined): Middleware {
  const securityUrl = `${base}/.well-known/security.txt`;
  const isSecurityText = isAt(securityUrl);
  function findFile(ctx: Context): { type: string; body: Buffer | string } | undefined {
    if (ctx.path === "/favicon.ico") return { type: "image/svg+xml", body: readFileSync(ICON) };
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
