import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { freePort, Program, ROOT, temporaryFolder, UNPRIVILEGED } from "../program.ts";

// Another version than the one of the system can be tested, too.
const PROGRAM = process.env.TEST_PGBOUNCER ?? "/usr/sbin/pgbouncer";
const DOCUMENT = `${ROOT}docs/operate/scaling.md`;
export const hasPgBouncer = existsSync(PROGRAM);

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
  const version = execFileSync(PROGRAM, ["--version"], { encoding: "utf8" });
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 || Number(minor) >= 21;
}

/** Starts PgBouncer as documented, with fewer connections to the database than one process would open itself. */
export async function startPgBouncer(url: string, { poolSize = 4 } = {}) {
  const target = new URL(url);
  const folder = temporaryFolder("pgbouncer");
  const port = await freePort();
  const config = path.join(folder, "pgbouncer.ini");
  const own = `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\n`;
  writeFileSync(config, `${documentedConfiguration(target, poolSize)}\n${own}`);
  chmodSync(folder, 0o755);
  const program = new Program(PROGRAM, [config], UNPRIVILEGED);
  await program.says(/process up/, "stderr");
  target.host = `127.0.0.1:${port}`;
  target.pathname = "/linkgate";
  return {
    url: target.href,
    pid: program.pid,
    async stop() {
      program.kill("SIGINT");
      await program.ended;
    },
  };
}
