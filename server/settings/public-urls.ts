import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Settings } from "./config.ts";

/** Returns the public URLs that follow from the settings and the actual port. */
export function publicUrlsOf(settings: Settings, port: number): PublicUrls {
  const base = settings.BASE_URL ?? `http://localhost:${port}`;
  return {
    base,
    api: `${base}/v1`,
    mcp: settings.MCP_URL ?? `${base}/mcp`,
    short: settings.SHORT_URL ?? base,
  };
}

/** Returns the hosts that requests may name. Every URL in a response comes from the settings, never from a request. */
export function hostsOf(urls: PublicUrls): ReadonlySet<string> {
  return new Set([urls.base, urls.mcp, urls.short].map((url) => new URL(url).host));
}

/** Returns the browser origins that may call the API: its own and those of `ALLOWED_ORIGINS`. */
export function originsOf(settings: Settings, urls: PublicUrls): ReadonlySet<string> {
  return new Set([new URL(urls.base).origin, ...settings.ALLOWED_ORIGINS]);
}
