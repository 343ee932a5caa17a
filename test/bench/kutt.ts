import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { freePort } from "../harness/port.ts";
import type { ServerProcess } from "./process.ts";
import type { Workspace } from "./workspace.ts";

/** The name of Kutt among the subjects of a measurement. */
export const KUTT = "Kutt";

export type Kutt = {
  /** What is measured, for the notes of a row. */
  version: string;
  server: ServerProcess;
  host: string;
  slug: string;
  /** Resolves to the number of visits that it has counted. */
  visits(): Promise<number>;
};

type Link = { address: string; visit_count: number };

/** Starts Kutt with its defaults, on a new SQLite database with one link, from the checkout that `KUTT` names. */
export async function startKutt(workspace: Workspace): Promise<Kutt | undefined> {
  const checkout = process.env.KUTT;
  if (!checkout) {
    console.log("SKIPPED Kutt: set KUTT to a checkout, see test/bench/README.md");
    return undefined;
  }
  const port = await freePort();
  const host = `localhost:${port}`;
  const env = {
    NODE_ENV: "production",
    PORT: String(port),
    DEFAULT_DOMAIN: host,
    DB_FILENAME: workspace.file("kutt.sqlite"),
    JWT_SECRET: randomBytes(32).toString("base64url"),
  };
  const migrate = [path.join(checkout, "node_modules/knex/bin/cli.js"), "migrate:latest"];
  await promisify(execFile)(process.execPath, migrate, { cwd: checkout, env: { ...process.env, ...env } });
  const server = await workspace.start({
    script: path.join(checkout, "server/server.js"),
    cwd: checkout,
    env,
    ready: /^> Ready on .*:(\d+)$/,
  });
  const links = await signUp(host);
  const { address } = await links<Link>({ target: "https://example.com/bench" });
  return {
    version: versionOf(checkout),
    server,
    host,
    slug: address,
    async visits() {
      const { data } = await links<{ data: Link[] }>();
      return data[0]?.visit_count ?? 0;
    },
  };
}

/** Creates the first user; returns a function that creates a link, or lists all of them. */
async function signUp(host: string) {
  const user = { email: "bench@example.com", password: randomBytes(16).toString("base64url") };
  await call(host, "/api/auth/create-admin", user); // its token has no subject
  const { token } = await call<{ token: string }>(host, "/api/auth/login", user);
  return <T>(link?: object) => call<T>(host, "/api/links", link, { cookie: `token=${token}` });
}

async function call<T>(host: string, address: string, body?: object, headers = {}): Promise<T> {
  const answer = await fetch(`http://${host}${address}`, {
    headers: { "content-type": "application/json", ...headers },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`Kutt: ${address} returned ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}

/** Returns the versions of Kutt and of its SQLite driver. */
function versionOf(checkout: string): string {
  const read = (folder: string) =>
    JSON.parse(readFileSync(path.join(checkout, folder, "package.json"), "utf8")).version as string;
  return `Kutt ${read(".")}, better-sqlite3 ${read("node_modules/better-sqlite3")}`;
}
