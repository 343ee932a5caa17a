import type { AllowedHosts } from "../resources/outbound/ssrf-guard.ts";
import type { Settings } from "./config.ts";

type HostSettings = Pick<Settings, "WEBHOOK_ALLOW_HOSTS" | "isProduction">;

const LOOPBACK: AllowedHosts = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Returns the hosts of this machine outside production, for tests and local development. */
export function developmentHosts({ isProduction }: HostSettings): AllowedHosts {
  return isProduction ? new Set() : LOOPBACK;
}

/** Returns the hosts that documents may be fetched from although they are private. */
export function fetchableHosts(settings: HostSettings): AllowedHosts {
  return new Set([...settings.WEBHOOK_ALLOW_HOSTS, ...developmentHosts(settings)]);
}
