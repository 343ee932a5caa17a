import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { freePort } from "../harness/program.ts";
import { type Server, Skipped, type Workspace } from "./workspace.ts";

type Link = { address: string; visit_count: number };

/** Starts Kutt with its defaults, on a new SQLite database with one link, from the checkout that `KUTT` names. */
export async function startKutt(workspace: Workspace): Promise<Server> {
  const checkout = process.env.KUTT;
  if (!checkout) throw new Skipped("set KUTT to a checkout, see test/bench/README.md");
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
  execFileSync(process.execPath, migrate, { cwd: checkout, env: { ...process.env, ...env }, stdio: "pipe" });
  const server = await workspace.start({
    script: path.join(checkout, "server/server.js"),
    cwd: checkout,
    env,
    ready: /^> Ready on .*:(\d+)$/,
  });
  const user = { email: "bench@example.com", password: randomBytes(16).toString("base64url") };
  await call(host, "/api/auth/create-admin", user); // its token has no subject
  const { token } = await call<{ token: string }>(host, "/api/auth/login", user);
  const links = <T>(link?: object) => call<T>(host, "/api/links", link, { cookie: `token=${token}` });
  const { address: slug } = await links<Link>({ target: "https://example.com/bench" });
  const stored = async () => (await links<{ data: [Link] }>()).data[0].visit_count;
  return { server, host, clients: [], slug, stored };
}

async function call<T>(host: string, address: string, body?: object, headers = {}): Promise<T> {
  const answer = await fetch(`http://${host}${address}`, {
    headers: { "content-type": "application/json", ...headers },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`Kutt: ${address} returned ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as T;
}
