import { randomBytes } from "node:crypto";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { startBalancer } from "./balancer.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { freePort } from "./port.ts";
import { addressOf, type Program, startServer } from "./program.ts";
import { populate, type TestService } from "./service.ts";

/** A setting of the server and its commands that makes them a newer version: one with more migrations. */
export const NEWER = { NODE_OPTIONS: `--import=${import.meta.resolve("./newer-version.ts")}` };

/** One database, and a URL in front of the server of one version, of the next, or of both in turn. */
export type TwoVersions = {
  /** Through the URL of both. */
  both: TestService;
  /** Each reaches one server only, with the Host header of both. */
  old: TestService;
  current: TestService;
  databaseUrl: string;
  /** Starts the newer version, which migrates the database, and then sends it every other request. */
  startCurrent(): Promise<void>;
  /** Sends all requests to the newer version, and stops the other one. */
  stopOld(): Promise<void>;
  /** Stops the newer version. Resolves to its output: errors, if any. */
  stopCurrent(): Promise<string>;
  close(): Promise<void>;
};

/** Starts a server on an empty database, before the one of the next version. */
export async function startOlderVersion(): Promise<TwoVersions> {
  const database = await createTestDatabase({ empty: true });
  const encryptionKey = randomBytes(32);
  const ports = { old: await freePort(), current: await freePort() };
  const backends = { authorization: [ports.old], resources: [ports.old] };
  const balancer = await startBalancer(backends);
  const settings = {
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: encryptionKey.toString("base64url"),
    BASE_URL: balancer.url,
    RATE_LIMIT: "off",
    LOG_LEVEL: "error",
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
  };
  const old = startServer({ settings: { ...settings, PORT: String(ports.old) } });
  await addressOf(old);
  let current: Program | undefined;
  const storage = openStorage(database.url, encryptionKey);

  const sendTo = (...chosen: number[]) =>
    Object.assign(backends, { authorization: chosen, resources: chosen });
  const stop = async (server: Program) => {
    const { code, stdout, stderr } = await server.stop();
    if (code !== 0) throw new Error(`a server exited with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };

  return {
    both: serviceAt(balancer.url, storage),
    old: serviceAt(await balancer.pin(ports.old), storage),
    current: serviceAt(await balancer.pin(ports.current), storage),
    databaseUrl: database.url,
    async startCurrent() {
      current = startServer({ settings: { ...settings, ...NEWER, PORT: String(ports.current) } });
      await addressOf(current);
      sendTo(ports.old, ports.current);
    },
    async stopOld() {
      sendTo(ports.current);
      await stop(old);
    },
    stopCurrent: () => stop(current as Program),
    async close() {
      await balancer.close();
      await storage.close();
      await database.drop();
    },
  };
}

/** A server of another process. */
export function serviceAt(url: string, storage: Storage): TestService {
  const urls = { base: url, api: `${url}/v1`, mcp: `${url}/mcp`, short: url };
  return { url, urls, storage, close: async () => {}, ...populate(url, storage) };
}
