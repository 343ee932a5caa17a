import { isMissing } from "../../../adapters/database/engine.ts";
import { describePlans } from "../../settings/production-warnings.ts";
import type { Command, CommandContext } from "../command.ts";
import { checkAddresses, checkProxies, checkServer } from "./addresses.ts";
import { type Check, type Inspect, runCheck } from "./check.ts";
import { checkClock, checkDescriptors, checkMail, checkNodeEnv, checkRateLimits } from "./environment.ts";
import {
  checkDatabase,
  checkDisk,
  checkEncryption,
  checkKeys,
  checkMigrations,
  checkSearchIndex,
} from "./storage.ts";

/** `doctor`: finds what is misconfigured, and says how to fix it. */
export const doctorCommand: Command = {
  name: "doctor",
  summary: "Check the settings, database, keys and public addresses without changing anything",
  isReadOnly: true,
  run: async (context) => ({ checks: await runChecks(context) }),
};

async function runChecks(context: CommandContext): Promise<Check[]> {
  const { settings, storage } = context;
  const isSqlite = storage.engine === "sqlite";
  const inspections: Record<string, Inspect> = {
    settings: async () => "valid",
    environment: checkNodeEnv,
    database: checkDatabase,
    // The others would create a database that is missing.
    ...(isMissing(settings.DATABASE_URL)
      ? {}
      : {
          ...(isSqlite ? { disk: checkDisk } : { clock: checkClock }),
          migrations: checkMigrations,
          ...(storage.engine === "postgres" ? { "search index": checkSearchIndex } : {}),
          keys: checkKeys,
          encryption: checkEncryption,
        }),
    addresses: checkAddresses,
    server: checkServer,
    ...(settings.TRUST_PROXY || settings.BASE_URL ? { proxies: checkProxies } : {}),
    ...(settings.SMTP_URL ? { mail: checkMail } : {}),
    "rate limits": checkRateLimits,
    descriptors: checkDescriptors,
    plans: async () => describePlans(settings),
  };
  const checks: Check[] = [];
  for (const [name, inspect] of Object.entries(inspections))
    checks.push(await runCheck(name, inspect, context));
  return checks;
}
