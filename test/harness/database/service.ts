import { randomBytes } from "node:crypto";
import type { SendDefaults } from "../../../resources/webhooks/send.ts";
import { startTestService } from "../service.ts";
import { createTestDatabase, inspect } from "./test-database.ts";

export async function startServiceWithDatabase(
  settings: Record<string, string> = {},
  sendDefaults: SendDefaults = {},
  options?: Parameters<typeof startTestService>[2],
) {
  const { url } = await createTestDatabase();
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const own = { DATABASE_URL: url, ENCRYPTION_KEY, ...settings };
  const service = await startTestService(own, sendDefaults, options);
  const { knex } = inspect(url);
  return {
    service,
    /** The settings of the service, for another one on the same database. */
    settings: own,
    knex,
  };
}
