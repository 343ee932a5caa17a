import { engineOf } from "../../adapters/database/engine.ts";
import type { Settings } from "./config.ts";

const COUNTS_APART =
  "Rate limits are shared by the workers of this server only. If there are several servers, set REDIS_URL.";

export function scopeWarningOf(settings: Settings): string | undefined {
  return settings.isProduction && mayCountApart(settings) ? COUNTS_APART : undefined;
}

/** Returns whether other servers could use the same database and count apart, which multiplies every limit. */
function mayCountApart({ REDIS_URL, DATABASE_URL, RATE_LIMIT }: Settings): boolean {
  return RATE_LIMIT && !REDIS_URL && engineOf(DATABASE_URL) !== "sqlite";
}

export function describeScope(settings: Settings): string {
  if (!settings.RATE_LIMIT) return "off";
  if (settings.REDIS_URL) return "shared by all servers with this REDIS_URL";
  const scope = "shared by the workers of this server";
  return mayCountApart(settings) ? `${scope}; set REDIS_URL if several servers use this database` : scope;
}
