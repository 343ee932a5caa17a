import { randomBytes } from "node:crypto";
import { openStorage } from "../../adapters/index.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { freePort } from "./port.ts";
import { addressOf, type Ending, type Program, startServer } from "./program.ts";
import { populate, type TestService } from "./service.ts";

/** One of the processes, with a URL that reaches only this one. Its Host header is that of the cluster. */
export type Member = TestService & {
  /** Stops it with SIGTERM. */
  stop(): Promise<Ending>;
  /** Restarts it on the same port. */
  start(): Promise<void>;
};

/**
 * Two authorization servers and two resource servers, which introspect tokens at the former. Each is a process, and all
 * share one database. Clients reach the cluster under one URL, whose requests go to the servers in turn.
 */
export type Cluster = TestService & {
  authorization: [Member, Member];
  resources: [Member, Member];
  databaseUrl: string;
  /** Stops all four gracefully. The database remains. */
  stop(): Promise<Ending[]>;
};

/** Starts all four concurrently on an empty database. The caller closes the cluster. */
export async function startCluster(settings: Record<string, string> = {}): Promise<Cluster> {
  const database = await createTestDatabase();
  const key = randomBytes(32);
  const secret = randomBytes(32).toString("base64url");
  const storage = openStorage(database.url, key);
  const ports = {
    authorization: [await freePort(), await freePort()],
    resources: [await freePort(), await freePort()],
  };
  const balancer = await startBalancer(ports);
  const shared = {
    DATABASE_URL: database.url,
    ENCRYPTION_KEY: key.toString("base64url"),
    BASE_URL: balancer.url,
    RATE_LIMIT: "off",
    LOG_LEVEL: "silent",
    // On a machine that is busy with other tests, a server with less patience would rightly refuse requests.
    DATABASE_TIMEOUT: "60",
    ...settings,
  };
  const asAuthorization = { ...shared, RESOURCE_SERVER_SECRET: secret };
  const asResources = {
    ...shared,
    INTROSPECTION_URL: `${balancer.url}/oauth/introspect`,
    INTROSPECTION_CLIENT_SECRET: secret,
  };

  const member = async (port: number, own: Record<string, string>): Promise<Member> => {
    let program: Program | undefined;
    const stop = async () => {
      const ending = await (program as Program).stop();
      if (ending.code !== 0)
        throw new Error(`a server exited with ${ending.code}:\n${ending.stdout}${ending.stderr}`);
      return ending;
    };
    return {
      ...(await viewAt(balancer, port)),
      stop,
      close: async () => void (await stop()),
      async start() {
        program = startServer({ settings: { ...own, PORT: String(port) } });
        await addressOf(program);
      },
    };
  };

  async function viewAt({ pin }: Balancer, port: number): Promise<TestService> {
    const url = await pin(port);
    const addresses = { base: url, mcp: `${url}/mcp`, api: `${url}/v1`, short: url };
    return { url, urls: addresses, storage, close: async () => {}, ...populate(url, storage) };
  }

  const pair = async ([one, other]: number[], own: Record<string, string>): Promise<[Member, Member]> => [
    await member(one as number, own),
    await member(other as number, own),
  ];
  const authorization = await pair(ports.authorization, asAuthorization);
  const resources = await pair(ports.resources, asResources);
  const members = [...authorization, ...resources];
  await Promise.all(members.map((one) => one.start()));

  const base = balancer.url;
  const stop = () => Promise.all(members.map((one) => one.stop()));
  return {
    url: base,
    urls: { base, mcp: `${base}/mcp`, api: `${base}/v1`, short: base },
    storage,
    ...populate(base, storage),
    authorization,
    resources,
    databaseUrl: database.url,
    stop,
    async close() {
      await stop();
      await balancer.close();
      await storage.close();
      await database.drop();
    },
  };
}
