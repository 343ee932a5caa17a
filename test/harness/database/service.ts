import { randomBytes } from "node:crypto";
import { openDatabase } from "../../../adapters/database/index.ts";
import type { SendDefaults } from "../../../resources/webhooks/send.ts";
import { closeAfterTests } from "../closing.ts";
import { startTestService } from "../service.ts";
import { createTestDatabase } from "./test-database.ts";

/** Starts a service whose database tests can read and change. */
export async function startServiceWithDatabase(
  settings: Record<string, string> = {},
  sendDefaults: SendDefaults = {},
  options?: Parameters<typeof startTestService>[2],
) {
  const { url, drop } = await createTestDatabase();
  const ENCRYPTION_KEY = randomBytes(32).toString("base64url");
  const own = { DATABASE_URL: url, ENCRYPTION_KEY, ...settings };
  const service = await startTestService(own, sendDefaults, options);
  const { knex, close } = openDatabase(url);
  return {
    service,
    /** The settings of the service, for another one on the same database. */
    settings: own,
    knex,
    close: closeAfterTests(async () => {
      await Promise.all([service.close(), close()]);
      await drop();
    }),
  };
}
