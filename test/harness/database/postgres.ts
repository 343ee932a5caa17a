import { execFileSync } from "node:child_process";
import { chownSync, globSync } from "node:fs";
import path from "node:path";
import { freePort, Program, temporaryFolder } from "../program.ts";

export type PostgresServer = Awaited<ReturnType<typeof startPostgres>>;

const [BIN = ""] = globSync("/usr/lib/postgresql/*/bin").toSorted().reverse();
export const hasPostgres = BIN !== "";

export async function startPostgres(settings: Record<string, string> = {}) {
  const folder = temporaryFolder("postgres");
  // PostgreSQL refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : undefined;
  if (user) chownSync(folder, user.uid, user.gid);
  const initial = ["-D", folder, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C.UTF-8"];
  execFileSync(path.join(BIN, "initdb"), initial, { stdio: ["ignore", "ignore", "pipe"], cwd: "/", ...user });
  const port = await freePort();
  const all = { listen_addresses: "127.0.0.1", unix_socket_directories: "", port: String(port), ...settings };
  const words = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const command = ["-D", folder, ...words];
  let program: Program;
  async function start() {
    program = new Program(path.join(BIN, "postgres"), command, { cwd: "/", ...user });
    await program.says(/ready to accept connections/, "stderr");
    return program;
  }
  program = await start();
  return {
    /** The URL of its database `postgres`. */
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    /** Its children serve the connections. */
    pid: program.pid,
    /** Ends all sessions, and stays stopped until `start` is called. */
    async stop() {
      program.kill("SIGINT");
      await program.ended;
    },
    start,
    log: () => program.stderr,
    async remove() {
      program.kill("SIGQUIT");
      await program.ended;
    },
  };
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
}
