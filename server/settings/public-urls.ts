import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Settings } from "./config.ts";

export function publicUrlsOf(settings: Settings, port: number): PublicUrls {
  const base = settings.BASE_URL ?? `http://localhost:${port}`;
  return {
    base,
    api: `${base}/v1`,
    mcp: settings.MCP_URL ?? `${base}/mcp`,
    short: settings.SHORT_URL ?? base,
  };
}

/** Every URL in a response comes from the settings, never from a request. */
export function hostsOf(urls: PublicUrls): ReadonlySet<string> {
  return new Set([urls.base, urls.mcp, urls.short].map((url) => new URL(url).host));
}

/** Its own and those of `ALLOWED_ORIGINS`. */
export function originsOf(settings: Settings, urls: PublicUrls): ReadonlySet<string> {
  return new Set([new URL(urls.base).origin, ...settings.ALLOWED_ORIGINS]);
}
