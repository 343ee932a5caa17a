import { readFile } from "node:fs/promises";
import type { Middleware } from "koa";

const FILES: Record<string, { file: URL; type: string }> = {
  "/assets/style.css": { file: new URL("./views/style.css", import.meta.url), type: "text/css" },
  "/assets/dashboard.css": { file: new URL("./views/dashboard.css", import.meta.url), type: "text/css" },
  "/assets/docs.css": { file: new URL("./views/docs.css", import.meta.url), type: "text/css" },
  "/assets/app.js": { file: new URL("./views/app.js", import.meta.url), type: "text/javascript" },
  "/assets/icon.svg": { file: new URL("./views/icon.svg", import.meta.url), type: "image/svg+xml" },
};

/** Serves the few files that pages need, from our own origin. */
export const assets: Middleware = async function serveAsset(ctx, next) {
  const asset = FILES[ctx.path];
  if (!asset || (ctx.method !== "GET" && ctx.method !== "HEAD")) return next();
  ctx.set("Cache-Control", "public, max-age=3600");
  ctx.type = asset.type;
  ctx.body = await readFile(asset.file);
};
