import { randomBytes } from "node:crypto";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { type Api, apiAt } from "./clients/api.ts";
import { firstPartyToken } from "./clients/dashboard.ts";
import { createTestDatabase, engine } from "./database/test-database.ts";
import { freePort } from "./port.ts";
import { addressOf, startServer, stopPrograms } from "./program.ts";
import { populate, type TestService, type TestUser } from "./service.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

/** The round-trip time between the far server and the database. SQLite is a file and has none. */
export const ROUND_TRIP_MS = engine === "sqlite" ? 0 : 20;

/** One of the processes, with a client of its dashboard's JSON API, signed in as the user of the pair. */
export type Server = TestService & { api: Api };

/**
 * Two server processes on one database. The network between the database and the second server is slow, so the
 * statements of its transactions interleave with those of the first server.
 */
export type DistantPair = {
  storage: Storage;
  user: TestUser;
  near: Server;
  far: Server;
  close(): Promise<void>;
};

/** Starts both. `transactions` is the number of transactions that the far server can run concurrently. */
export async function startDistantPair({ transactions = 10 } = {}): Promise<DistantPair> {
  const database = await createTestDatabase();
  const key = randomBytes(32);
  const storage = openStorage(database.url, key);
  await storage.migrate();
  const user = await populate("", storage).createUser([]);
  const proxy = ROUND_TRIP_MS ? await startTcpProxy(database.url, { roundTripMs: ROUND_TRIP_MS }) : undefined;

  async function start(databaseUrl: string, workers: number): Promise<Server> {
    const settings = {
      DATABASE_URL: databaseUrl,
      ENCRYPTION_KEY: key.toString("base64url"),
      PORT: String(await freePort()),
      WORKERS: String(workers),
      RATE_LIMIT: "off",
      LOG_LEVEL: "silent",
    };
    const url = await addressOf(startServer({ settings }));
    const urls = { base: url, mcp: `${url}/mcp`, api: `${url}/v1`, short: url };
    const service = { url, urls, storage, close: async () => {}, ...populate(url, storage) };
    return { ...service, api: apiAt(url, await firstPartyToken(service, user)) };
  }

  const near = await start(database.url, 1);
  // Each worker has ten connections.
  const far = proxy
    ? await start(proxy.through(database.url), Math.ceil(transactions / 10))
    : await start(database.url, 1);
  return {
    storage,
    user,
    near,
    far,
    async close() {
      stopPrograms();
      await proxy?.close();
      await storage.close();
      await database.drop();
    },
  };
}
