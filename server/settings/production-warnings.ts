import { engineOf } from "../../adapters/database/engine.ts";
import type { Settings } from "./config.ts";

const PLANS_WARNING =
  "Owners and admins can change plans themselves. To prevent this, set SELF_SERVICE_PLANS=off.";

export function productionWarningsOf(settings: Settings): string[] {
  if (!settings.isProduction) return [];
  const warnings = [
    mayCountApart(settings) &&
      "Rate limits are shared by the workers of this server only. If there are several servers, set REDIS_URL.",
    settings.SELF_SERVICE_PLANS && PLANS_WARNING,
  ];
  return warnings.filter((warning) => warning !== false);
}

export function describePlans({ SELF_SERVICE_PLANS, isProduction }: Settings): string {
  if (!SELF_SERVICE_PLANS) return "changed by the CLI only";
  return isProduction ? PLANS_WARNING : "changed by owners and admins";
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
