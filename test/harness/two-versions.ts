import { randomBytes } from "node:crypto";
import { openStorage, type Storage } from "../../adapters/index.ts";
import { startBalancer } from "./balancer.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { freePort } from "./port.ts";
import { unpackPreviousRelease } from "./previous-release.ts";
import { addressOf, type Program, startServer } from "./program.ts";
import { populate, type TestService } from "./service.ts";

/** A setting of the server and the commands of this version: adds a migration, so that there is one to apply. */
export const NEWER = { NODE_OPTIONS: `--import=${import.meta.resolve("./newer-version.ts")}` };

/** One database, and a URL in front of the server of the previous release, of this one, or of both in turn. */
export type TwoVersions = {
  /** Through the URL of both. The storage is that of the previous release. */
  both: TestService;
  /** Each reaches one server only, with the Host header of both. */
  old: TestService;
  current: TestService;
  databaseUrl: string;
  /** Starts this version, which migrates the database, and then sends it every other request. */
  startCurrent(): Promise<void>;
  /** Sends all requests to this version, and stops the previous one. */
  stopOld(): Promise<void>;
  /** Stops this version. Resolves to its output: errors, if any. */
  stopCurrent(): Promise<string>;
  close(): Promise<void>;
};

/** Starts a server of the previous release on an empty database. */
export async function startPreviousRelease(): Promise<TwoVersions> {
  const release = unpackPreviousRelease();
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
  const old = release.start({ ...settings, PORT: String(ports.old) });
  await addressOf(old);
  let current: Program | undefined;
  const previousStorage = await release.openStorage(database.url, encryptionKey);
  const storage = openStorage(database.url, encryptionKey);

  const sendTo = (...chosen: number[]) =>
    Object.assign(backends, { authorization: chosen, resources: chosen });
  const stop = async (server: Program) => {
    const { code, stdout, stderr } = await server.stop();
    if (code !== 0) throw new Error(`a server exited with ${code}:\n${stdout}${stderr}`);
    return stdout;
  };

  return {
    both: serviceAt(balancer.url, previousStorage),
    old: serviceAt(await balancer.pin(ports.old), previousStorage),
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
      await Promise.all([previousStorage.close(), storage.close()]);
      await database.drop();
      release.remove();
    },
  };
}

/** A server of another process. */
export function serviceAt(url: string, storage: Storage): TestService {
  const urls = { base: url, api: `${url}/v1`, mcp: `${url}/mcp`, short: url };
  return { url, urls, storage, close: async () => {}, ...populate(url, storage) };
}
