import type { AllowedHosts } from "../../resources/outbound/ssrf-guard.ts";
import type { Settings } from "./config.ts";

type HostSettings = Pick<Settings, "WEBHOOK_ALLOW_HOSTS" | "isProduction">;

const LOOPBACK: AllowedHosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** For tests and local development. */
export function developmentHosts({ isProduction }: HostSettings): AllowedHosts {
  return isProduction ? new Set() : LOOPBACK;
}

/** The operator chose this host, which may be private. */
export function identityProviderHosts({ IDP_ISSUER }: Pick<Settings, "IDP_ISSUER">): AllowedHosts {
  return new Set(IDP_ISSUER ? [new URL(IDP_ISSUER).hostname] : []);
}

export function fetchableHosts(settings: HostSettings): AllowedHosts {
  return new Set([...settings.WEBHOOK_ALLOW_HOSTS, ...developmentHosts(settings)]);
}
