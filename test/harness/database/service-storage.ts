import { startTestService } from "../service.ts";
import { createTestStorage } from "./storage.ts";

export async function startWithStorage(own: Record<string, string> = {}) {
  const { url, encryptionKey, second, database, close } = await createTestStorage();
  const key = encryptionKey.toString("base64url");
  const settings = { DATABASE_URL: url, ENCRYPTION_KEY: key, ...own };
  const service = await startTestService(settings);
  return {
    service,
    /** The settings of the service, for another one on the same database. */
    settings,
    second,
    knex: database.knex,
    async close() {
      await service.close();
      await close();
    },
  };
}
