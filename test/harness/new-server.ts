import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { openStorage } from "../../adapters/index.ts";
import { closeAfterTests } from "./closing.ts";
import { createTestDatabase } from "./database/test-database.ts";
import { addressOf, type Program, startServer } from "./program.ts";
import { populate } from "./service.ts";

type Settings = Record<string, string>;
type Options = {
  empty?: boolean;
  parameters?: string;
  /** Where the encryption key is written, if not to a setting. */
  keyFile?: string;
};

/** Creates a database for servers that are processes. `close` kills those that still run, and drops the database. */
export async function prepareServers(
  changes: Settings = {},
  { empty = false, parameters = "", keyFile }: Options = {},
) {
  const database = await createTestDatabase({ empty });
  const DATABASE_URL = database.url + parameters;
  const key = randomBytes(32);
  const text = key.toString("base64url");
  if (keyFile) writeFileSync(keyFile, text, { mode: 0o600 });
  const storage = openStorage(DATABASE_URL, key);
  const servers = new Set<Program>();
  const settings: Settings & { DATABASE_URL: string } = {
    DATABASE_URL,
    ...(keyFile ? { ENCRYPTION_KEY_FILE: keyFile } : { ENCRYPTION_KEY: text }),
    PORT: "0",
    RATE_LIMIT: "off",
    WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    ...changes,
  };
  /** Starts a server, and doesn't wait until it listens. */
  function launch(more: Settings = {}): Program {
    const server = startServer({ settings: { ...settings, ...more } });
    servers.add(server);
    void server.ended.then(() => servers.delete(server));
    return server;
  }
  return {
    settings,
    key,
    storage,
    launch,
    async start(more: Settings = {}) {
      const server = launch(more);
      const url = await addressOf(server);
      return { server, url, ...populate(url, storage) };
    },
    close: closeAfterTests(async () => {
      for (const server of servers) server.killGroup();
      await Promise.all(Array.from(servers, ({ ended }) => ended));
      await storage.close();
      await database.drop();
    }),
  };
}

/** Starts a server as a process, with a database of its own. `stop` also drops the database. */
export async function startOnNewDatabase(changes: Settings = {}, options: Options = {}) {
  const { close, start, ...prepared } = await prepareServers(changes, options);
  const started = await start();
  return {
    ...prepared,
    ...started,
    async stop() {
      const ending = await started.server.stop();
      await close();
      return ending;
    },
  };
}
