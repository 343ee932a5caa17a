import { engineOf } from "../../adapters/database/engine.ts";
import type { Settings } from "./config.ts";

type ScopeSettings = Pick<Settings, "REDIS_URL" | "DATABASE_URL" | "RATE_LIMIT">;

/** Returns whether other servers could use the same database and count apart, which multiplies every limit. */
export function mayCountApart({ REDIS_URL, DATABASE_URL, RATE_LIMIT }: ScopeSettings): boolean {
  return RATE_LIMIT && !REDIS_URL && engineOf(DATABASE_URL) !== "sqlite";
}

/** Describes which processes share the rate limits. */
export function describeScope(settings: ScopeSettings): string {
  if (!settings.RATE_LIMIT) return "off";
  if (settings.REDIS_URL) return "shared by all servers with this REDIS_URL";
  const scope = "shared by the workers of this server";
  return mayCountApart(settings) ? `${scope}; set REDIS_URL if several servers use this database` : scope;
}
