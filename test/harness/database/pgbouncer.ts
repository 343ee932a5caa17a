import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../port.ts";

// Another version than the one of the system can be tested, too.
const PROGRAM = process.env.TEST_PGBOUNCER ?? "/usr/sbin/pgbouncer";

/** Whether PgBouncer is installed. */
export const hasPgBouncer = existsSync(PROGRAM);

/** Starts PgBouncer in transaction mode, with fewer connections to the database than one process would open itself. */
export async function startPgBouncer(
  url: string,
  { poolSize = 4 } = {},
): Promise<{ url: string; pid: number; stop(): Promise<void> }> {
  const target = new URL(url);
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-pgbouncer-"));
  const port = await freePort();
  const config = path.join(folder, "pgbouncer.ini");
  const password = target.password ? ` password=${decodeURIComponent(target.password)}` : "";
  writeFileSync(
    config,
    `[databases]
* = host=${target.hostname} port=${target.port || 5432} user=${target.username}${password} connect_query='set lock_timeout to ''30s''; set statement_timeout to ''11s'''
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
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
