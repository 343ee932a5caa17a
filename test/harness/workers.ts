import { randomBytes } from "node:crypto";
import { openStorage } from "../../adapters/index.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { addressOf, type Program, startServer } from "./program.ts";
import { populate, type TestService } from "./service.ts";

/** A server with two workers on one port. `program` is their primary process. */
export type Workers = Pick<TestService, "url" | "storage" | "createOrganization" | "token" | "close"> & {
  program: Program;
};

/** Starts a server with two workers on an empty database. The caller closes it. */
export async function startWorkers(settings: Record<string, string>): Promise<Workers> {
  const database = await createTestDatabase();
  const key = randomBytes(32);
  const storage = openStorage(database.url, key);
  const program = startServer({
    settings: {
      DATABASE_URL: database.url,
      ENCRYPTION_KEY: key.toString("base64url"),
      WORKERS: "2",
      PORT: "0",
      LOG_LEVEL: "error",
      ...settings,
    },
  });
  const url = await addressOf(program);
  const { createOrganization, token } = populate(url, storage);
  return {
    url,
    program,
    storage,
    createOrganization,
    token,
    async close() {
      await program.stop();
      await storage.close();
      await database.drop();
    },
  };
}
