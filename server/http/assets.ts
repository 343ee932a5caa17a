import { readFileSync } from "node:fs";
import type { Middleware } from "koa";
import { BASE_CSS, DASHBOARD_CSS } from "../ui/css/index.ts";

type Asset = { type: string; body: string };

const ASSETS: Record<string, Asset> = {
  "/assets/style.css": { type: "text/css", body: BASE_CSS },
  "/assets/dashboard.css": { type: "text/css", body: DASHBOARD_CSS },
  "/assets/docs.css": { type: "text/css", body: read(new URL("../docs/docs.css", import.meta.url)) },
  "/assets/app.js": { type: "text/javascript", body: read(new URL("../ui/app.js", import.meta.url)) },
  "/assets/passkeys.js": {
    type: "text/javascript",
    body:
      read(new URL("../dist/bundle/index.umd.min.js", import.meta.resolve("@simplewebauthn/browser"))) +
      read(new URL("../ui/passkeys.js", import.meta.url)),
  },
  "/assets/icon.svg": { type: "image/svg+xml", body: read(new URL("../ui/icon.svg", import.meta.url)) },
};

/** Serves the style sheets, the script and the icon of the pages. */
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
