import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { createApp } from "../../server/app.ts";
import { appPolicyCheckOf } from "../../server/clients/app-policy.ts";
import { createLog } from "../../server/log.ts";
import { createMetrics } from "../../server/observability/metrics.ts";
import { prepareStorage } from "../../server/process/prepare.ts";
import { createRateLimitStore, type RateLimitStore } from "../../server/rate-limits/store.ts";
import { readSettings } from "../../server/settings/config.ts";
import { publicUrlsOf } from "../../server/settings/public-urls.ts";
import { closeAfterTests } from "./closing.ts";
import { openObserved } from "./database/storage.ts";
import { createTestDatabase } from "./database/test-database.ts";

export const BASE = "https://links.example.com";
export const HOST = "Host: links.example.com";

// Some requests leave the connection open, such as an upgrade.
const TIMEOUTS = { keepAliveTimeout: 1000, keepAliveTimeoutBuffer: 1 };

/** Opens a new database, and serves applications on it, which tests reach by the bytes of their requests. */
export async function createSites(options?: Parameters<typeof openObserved>[2]) {
  const database = await createTestDatabase();
  const key = randomBytes(32);
  const storage = openObserved(database.url, key, options);
  await storage.migrate();
  const servers: Server[] = [];

  async function listen(server: Server, at: number): Promise<number> {
    servers.push(server);
    await once(server.listen(at, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  }

  return {
    storage,

    /** Serves an application. `logged` has what was logged as an error. */
    async serve(
      changes: Record<string, string> = {},
      served = storage,
      observe = (store: RateLimitStore) => store,
    ) {
      const logged: unknown[] = [];
      const log = Object.assign(createLog("silent"), { error: (...entry: unknown[]) => logged.push(entry) });
      const settings = readSettings({
        BASE_URL: BASE,
        PORT: "0",
        DATABASE_URL: database.url,
        ENCRYPTION_KEY: key.toString("base64url"),
        RATE_LIMIT: "off",
        LOG_LEVEL: "silent",
        ...changes,
      });
      const keys = await prepareStorage(settings, storage, log);
      const unused = () => Promise.reject(new Error("nothing is fetched"));
      const urls = publicUrlsOf(settings, 0);
      const { listener, observability } = createApp({
        settings,
        urls,
        storage: served,
        appPolicyCheck: appPolicyCheckOf(settings),
        keys,
        rateLimitStore: observe(await createRateLimitStore(settings)),
        metrics: createMetrics(log),
        log,
        fetch: unused,
        fetchConfigured: unused,
        fetchFromProvider: unused,
        resolveTxt: unused,
      });
      const port = await listen(createServer(TIMEOUTS, listener), settings.PORT);
      return { port, urls, observability, logged };
    },

    close: closeAfterTests(async () => {
      for (const server of servers) server.close();
      await storage.close();
      await database.drop();
    }),
  };
}

const LAST = `GET /healthz HTTP/1.1\r\n${HOST}\r\nConnection: close\r\n\r\n`;

// Node rejects what follows such a request, before a slow response.
const CLOSING = /^Connection: close|HTTP\/1\.0\r\n(?![\s\S]*keep-alive)/im;

/** Sends bytes and a last request that closes the connection, unless they do. Returns all responses without what differs each time. */
export async function send(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(bytes);
  if (!CLOSING.test(bytes.toString("latin1"))) socket.write(LAST);
  return (await text(socket))
    .replaceAll(/^(X-Request-Id|Date): .+$/gm, "$1: …")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "…");
}

/** Returns the bytes of a request without a body. */
export function request(method: string, path: string, ...headers: string[]): string {
  return `${[`${method} ${path} HTTP/1.1`, ...headers].join("\r\n")}\r\n\r\n`;
}
