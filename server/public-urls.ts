import type { Addresses } from "../resources/metadata.ts";
import type { Settings } from "./config.ts";

/** Every public address, from the settings and the port that is really listened on. */
export function addressesOf(settings: Settings, port: number): Addresses {
  const base = settings.BASE_URL ?? `http://localhost:${port}`;
  return {
    base,
    api: `${base}/v1`,
    mcp: settings.MCP_URL ?? `${base}/mcp`,
    short: settings.SHORT_URL ?? base,
  };
}

/** The hosts that requests may name; every URL that is printed comes from the settings, never from a request. */
export function hostsOf(addresses: Addresses): ReadonlySet<string> {
  return new Set([addresses.base, addresses.mcp, addresses.short].map((url) => new URL(url).host));
}

/** The browser origins that may call: our own, and those of `ALLOWED_ORIGINS`. */
export function originsOf(settings: Settings, addresses: Addresses): ReadonlySet<string> {
  return new Set([new URL(addresses.base).origin, ...settings.ALLOWED_ORIGINS]);
}
