import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "../port.ts";
import { Program } from "../program.ts";

/** A PostgreSQL server of a test's own. */
export type PostgresServer = {
  /** The URL of its database `postgres`. */
  url: string;
  /** The process id of the server, whose children serve the connections. */
  pid: number;
  /** Stops it, and removes its files. */
  remove(): Promise<void>;
};

const [BIN = ""] = globSync("/usr/lib/postgresql/*/bin").toSorted().reverse();
// PostgreSQL refuses to run as root.
const OWNER = process.getuid?.() === 0 ? "postgres" : undefined;

/** Whether the programs of a PostgreSQL server are installed. */
export const hasPostgres = BIN !== "";

/** Starts a new server. `settings` are those of `postgresql.conf`. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<PostgresServer> {
  const folder = createFolder();
  run("initdb", ["-D", folder, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C.UTF-8"]);
  const port = await freePort();
  const all = { listen_addresses: "127.0.0.1", unix_socket_directories: "", port: String(port), ...settings };
  const words = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const program = new Program(path.join(BIN, "postgres"), ["-D", folder, ...words], uidOption());
  await program.says(/ready to accept connections/, "stderr");
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    pid: program.pid,
    async remove() {
      program.kill("SIGQUIT");
      await program.ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function createFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-postgres-"));
  chmodSync(folder, 0o700);
  if (OWNER) chownSync(folder, idOf("-u"), idOf("-g"));
  return folder;
}

function run(name: string, words: string[]): void {
  const { uid } = uidOption();
  execFileSync(path.join(BIN, name), words, {
    stdio: ["ignore", "ignore", "pipe"],
    cwd: "/",
    ...(uid !== undefined && { uid, gid: idOf("-g") }),
  });
}

function uidOption(): { uid?: number; cwd: string } {
  return { cwd: "/", ...(OWNER && { uid: idOf("-u") }) };
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, OWNER as string], { encoding: "utf8" }));
}
