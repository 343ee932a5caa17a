import cluster from "node:cluster";
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isReadOnly } from "../../adapters/database/errors.ts";
import type { Storage } from "../../adapters/index.ts";
import { createMissingKey } from "../keys/encryption-keys.ts";
import { type Keys, keysAt, loadStoredKeys } from "../keys/shared-keys.ts";
import type { Log } from "../log.ts";
import type { Settings } from "../settings/config.ts";
import { toListenError, toStartupError } from "../startup-errors.ts";

const RETRY_MS = 1000;

/** With workers, one process prepares for all. Waits until it can write. Throws StartupError or WrongEncryptionKey. */
export async function prepareStorage(settings: Settings, storage: Storage, log: Log): Promise<Keys> {
  for (let attempts = 0; ; attempts++) {
    try {
      const keys = await prepare(settings, storage, log);
      if (attempts > 0) log.info("stopped waiting for a writable database");
      return keys;
    } catch (error) {
      if (!isReadOnly(error)) throw toStartupError(error, settings.DATABASE_URL);
      if (attempts === 0) log.warn({ err: error }, "the database is read-only and not migrated, will retry");
      await sleep(RETRY_MS);
    }
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
