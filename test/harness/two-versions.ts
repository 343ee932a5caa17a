import { randomBytes } from "node:crypto";
import { openStorage } from "../../adapters/index.ts";
import { startBalancer } from "./balancer.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { freePort } from "./port.ts";
import { unpackPreviousRelease } from "./previous-release.ts";
import { addressOf, type Program, startServer } from "./program.ts";
import { populate, startTestService, type TestService } from "./service.ts";

/** One database, and a URL in front of the server of the previous release, of this one, or of both in turn. */
export type TwoVersions = {
  /** Through the URL of both. The storage is that of the previous release. */
  both: TestService;
  /** Each reaches one server only, with the Host header of both. */
  old: TestService;
  current: TestService;
  databaseUrl: string;
  encryptionKey: Buffer;
  /** Starts this version, which migrates the database, and then sends it every other request. */
  startCurrent(): Promise<void>;
  /** Sends all requests to this version, and stops the previous one. */
  stopOld(): Promise<void>;
  /**
   * Stops the previous version, and starts two servers of this one in this process, where tests can advance the clock.
   * Each has a URL that reaches only it.
   */
  replaceInProcess(): Promise<[TestService, TestService]>;
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
  const inProcess: TestService[] = [];
  const previousStorage = await release.openStorage(database.url, encryptionKey);
  const storage = openStorage(database.url, encryptionKey);

  const serviceAt = (url: string, stores: typeof storage): TestService => {
    const urls = { base: url, api: `${url}/v1`, mcp: `${url}/mcp`, short: url };
    return { url, urls, storage: stores, close: async () => {}, ...populate(url, stores) };
  };
  const sendTo = (...chosen: number[]) =>
    Object.assign(backends, { authorization: chosen, resources: chosen });
  const startInProcess = async (port: number): Promise<TestService> => {
    const service = await startTestService({ ...settings, PORT: String(port) });
    inProcess.push(service);
    return { ...serviceAt(await balancer.pin(port), service.storage), close: service.close };
  };
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
    encryptionKey,
    async startCurrent() {
      current = startServer({ settings: { ...settings, PORT: String(ports.current) } });
      await addressOf(current);
      sendTo(ports.old, ports.current);
    },
    async stopOld() {
      sendTo(ports.current);
      await stop(old);
    },
    async replaceInProcess() {
      await stop(old);
      const others = [ports.current, await freePort()] as const;
      const services = await Promise.all(others.map(startInProcess));
      sendTo(...others);
      return services as [TestService, TestService];
    },
    stopCurrent: () => stop(current as Program),
    async close() {
      await balancer.close();
      await Promise.all(inProcess.map((service) => service.close()));
      await Promise.all([previousStorage.close(), storage.close()]);
      await database.drop();
      release.remove();
    },
  };
}
