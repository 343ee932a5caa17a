import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../port.ts";
import { ROOT } from "../program.ts";

// Another version than the one of the system can be tested, too.
const PROGRAM = process.env.TEST_PGBOUNCER ?? "/usr/sbin/pgbouncer";
const DOCUMENT = `${ROOT}docs/operate/scaling.md`;

/** Whether PgBouncer is installed. */
export const hasPgBouncer = existsSync(PROGRAM);

/** The configuration file of the documentation, with the database's address, and the size of the pool. */
function documentedConfiguration(target: URL, poolSize: number): string {
  const [, ini = ""] = /```ini\n(\[databases\][\s\S]*?)```/.exec(readFileSync(DOCUMENT, "utf8")) ?? [];
  const password = target.password ? ` password=${decodeURIComponent(target.password)}` : "";
  const address = `host=${target.hostname} port=${target.port || 5432} user=${target.username}${password}`;
  const replacements: [text: string, replacement: string][] = [
    ["host=primary dbname=linkgate", `${address} dbname=${target.pathname.slice(1)}`],
    ["default_pool_size = 40", `default_pool_size = ${poolSize}`],
  ];
  // As the documentation says, earlier versions don't know it.
  if (!knowsPreparedStatements()) replacements.push(["max_prepared_statements = 200\n", ""]);
  return replacements.reduce((text, [part, replacement]) => {
    if (!text.includes(part)) throw new Error(`the documented configuration has no "${part}"`);
    return text.replace(part, replacement);
  }, ini);
}

function knowsPreparedStatements(): boolean {
  const [, major, minor] =
    /(\d+)\.(\d+)/.exec(execFileSync(PROGRAM, ["--version"], { encoding: "utf8" })) ?? [];
  return Number(major) > 1 || Number(minor) >= 21;
}

/** Starts PgBouncer as documented, with fewer connections to the database than one process would open itself. */
export async function startPgBouncer(
  url: string,
  { poolSize = 4 } = {},
): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const target = new URL(url);
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-pgbouncer-"));
  const port = await freePort();
  const config = path.join(folder, "pgbouncer.ini");
  writeFileSync(
    config,
    `${documentedConfiguration(target, poolSize)}
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
`,
  );
  chmodSync(folder, 0o755);
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn(PROGRAM, [...user, config], { stdio: ["ignore", "ignore", "pipe"] });
  const lines = createInterface(child.stderr);
  const output: string[] = [];
  for await (const line of lines) {
    output.push(line);
    if (line.includes("process up")) break;
  }
  if (child.exitCode !== null) throw new Error(`PgBouncer did not start: ${output.join("\n")}`);
  child.stderr.resume();
  target.host = `127.0.0.1:${port}`;
  target.pathname = "/linkgate";
  return {
    url: target.href,
    pid: child.pid as number,
    async stop() {
      child.kill("SIGINT");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
