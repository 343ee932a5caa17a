import cluster from "node:cluster";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isReadOnly } from "../../adapters/database/errors.ts";
import type { Storage } from "../../adapters/index.ts";
import { RETRY_AFTER_S } from "../../resources/http/problem.ts";
import { createMissingKey } from "../keys/encryption-keys.ts";
import { type Keys, keysAt, loadStoredKeys } from "../keys/shared-keys.ts";
import type { Log } from "../log.ts";
import type { Settings } from "../settings/config.ts";
import { toListenError, toStartupError } from "../startup-errors.ts";

const RETRY_MS = 1000;

/**
 * With workers, one process prepares for all. Waits while the database is read-only and lacks tables or keys. Throws
 * StartupError or WrongEncryptionKey.
 */
export async function prepareStorage(settings: Settings, storage: Storage, log: Log): Promise<Keys> {
  try {
    return await prepare(settings, storage, log).catch(async (error) => {
      if (!isReadOnly(error)) throw error;
      log.warn({ err: error }, "the database is read-only and not migrated, will retry");
      const keys = await retryWhileReadOnly(settings, () => prepare(settings, storage, log));
      log.info("stopped waiting for a writable database");
      return keys;
    });
  } catch (error) {
    throw toStartupError(error, settings.DATABASE_URL);
  }
}

async function prepare(settings: Settings, storage: Storage, log: Log): Promise<Keys> {
  await storage.migrate();
  await createMissingKey(settings, storage);
  const newer = cluster.isPrimary ? await storage.newerMigrations() : [];
  if (newer.length > 0)
    log.warn({ newer }, "the database was migrated by a newer version; this version can use it");
  return keysAt(await loadStoredKeys(storage.keys), Date.now());
}

/** Meanwhile, tells load balancers that the process is alive, but not ready. */
async function retryWhileReadOnly<T>(settings: Settings, work: () => Promise<T>): Promise<T> {
  const refusal = createServer(({ url }, response) => {
    const isAlive = url === "/healthz";
    if (!isAlive) response.setHeader("retry-after", RETRY_AFTER_S);
    response.writeHead(isAlive ? 200 : 503, {
      connection: "close", // the port is closed before the one that serves is opened
      "content-type": "application/json",
      "cache-control": "no-store",
    });
    response.end(JSON.stringify({ status: isAlive ? "ok" : "read_only" }));
  });
  await listen(refusal, "PORT", settings);
  try {
    for (;;) {
      await sleep(RETRY_MS);
      const done = await work().catch((error) => {
        if (!isReadOnly(error)) throw error;
      });
      if (done) return done;
    }
  } finally {
    refusal.close();
    refusal.closeAllConnections();
    await once(refusal, "close");
  }
}

/** Returns the actual port. Throws StartupError. */
export async function listen(
  server: Server,
  setting: "PORT" | "METRICS_PORT",
  settings: Settings,
): Promise<number> {
  const { HOST, [setting]: port = 0 } = settings;
  try {
    server.listen(port, HOST);
    await once(server, "listening");
  } catch (error) {
    throw toListenError(error as Error, setting, port, HOST);
  }
  return (server.address() as AddressInfo).port;
}
