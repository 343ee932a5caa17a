import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { AllowedHosts } from "../../resources/outbound/ssrf-guard.ts";
import type { Settings } from "./config.ts";
import { LOOPBACK } from "./setting-types.ts";

export function publicUrlsOf(settings: Settings, port: number): PublicUrls {
  const base = settings.BASE_URL ?? `http://localhost:${port}`;
  const mcp = settings.MCP_URL ?? `${base}/mcp`;
  return { base, api: `${base}/v1`, mcp, mcpRead: `${mcp}/read`, short: settings.SHORT_URL ?? base };
}

/** Every URL in a response comes from the settings, never from a request. */
export function hostsOf(urls: PublicUrls): ReadonlySet<string> {
  return new Set([urls.base, urls.mcp, urls.short].map((url) => new URL(url).host));
}

/** Its own and those of `ALLOWED_ORIGINS`. */
export function originsOf(settings: Settings, urls: PublicUrls): ReadonlySet<string> {
  return new Set([new URL(urls.base).origin, ...settings.ALLOWED_ORIGINS]);
}

/** For tests and local development. */
export function developmentHosts({ isProduction }: Pick<Settings, "isProduction">): AllowedHosts {
  return isProduction ? new Set() : LOOPBACK;
}

/** The operator chose this host, which may be private. */
export function identityProviderHosts({ IDP_ISSUER }: Pick<Settings, "IDP_ISSUER">): AllowedHosts {
  return new Set(IDP_ISSUER ? [new URL(IDP_ISSUER).hostname] : []);
}

export function fetchableHosts(
  settings: Pick<Settings, "WEBHOOK_ALLOW_HOSTS" | "isProduction">,
): AllowedHosts {
  return new Set([...settings.WEBHOOK_ALLOW_HOSTS, ...developmentHosts(settings)]);
}
