import type { Settings } from "./config.ts";
import { mayCountApart } from "./rate-limit-scope.ts";

/** Returns what an operator should know about settings that are valid, but rarely meant for production. */
export function productionWarningsOf(settings: Settings): string[] {
  if (!settings.isProduction) return [];
  return [
    ...(mayCountApart(settings)
      ? [
          "rate limits are shared by the workers of this server only; set REDIS_URL if there are several servers",
        ]
      : []),
    ...(settings.SELF_SERVICE_PLANS
      ? [
          "every owner and admin can choose any plan at no charge; set SELF_SERVICE_PLANS=off if only you should",
        ]
      : []),
  ];
}

/** Describes who can change the plan of an organization. */
export function describePlans({
  SELF_SERVICE_PLANS,
  isProduction,
}: Pick<Settings, "SELF_SERVICE_PLANS" | "isProduction">): string {
  if (!SELF_SERVICE_PLANS) return "changed by the CLI only";
  const who = "changed by owners and admins at no charge";
  return isProduction ? `${who}; set SELF_SERVICE_PLANS=off if only you should change them` : who;
}
