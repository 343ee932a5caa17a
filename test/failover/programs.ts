import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { childrenOf, Program, runShell, UNPRIVILEGED } from "../harness/program.ts";
import { createMachineFolder, type Machine, writeDocumented } from "./documented.ts";

const HAPROXY = "/usr/sbin/haproxy";
const PGBOUNCER = "/usr/sbin/pgbouncer";
/** What Debian's packages postgresql, patroni, etcd-server, haproxy and pgbouncer install. */
export const POSTGRES_PROGRAMS = [
  "/usr/lib/postgresql/15/bin/postgres",
  "/usr/bin/patroni",
  "/usr/bin/etcd",
  HAPROXY,
  PGBOUNCER,
];
/** What Debian's packages mariadb-server, galera-4, rsync and haproxy install. */
export const GALERA_PROGRAMS = [
  "/usr/sbin/mariadbd",
  "/usr/lib/galera/libgalera_smm.so",
  "/usr/bin/rsync",
  HAPROXY,
];

const DEADLINE_MS = 120_000;
const POLL_MS = 200;

/** Asks until there is an answer. */
export async function poll<T>(what: string, ask: () => Promise<T | undefined>, explain = () => "") {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`timed out: ${what}\n${explain()}`);
    await sleep(POLL_MS);
  }
}

export async function run(command: string): Promise<string> {
  const { code, stdout, stderr } = await runShell(command);
  if (code !== 0) throw new Error(`${command}\n${stdout}${stderr}`);
  return stdout;
}

export const startEtcd = (name: Machine, folder: string) =>
  new Program("/usr/bin/etcd", ["--config-file", writeDocumented("/etc/etcd/etcd.yml", folder, name)], {
    cwd: folder,
    ...UNPRIVILEGED,
  });

export function startHaproxy(file: string, folder: string): Program {
  return new Program(HAPROXY, ["-db", "-f", writeDocumented(file, folder)]);
}

export async function startPooler(folder: string): Promise<Program> {
  writeDocumented("/etc/pgbouncer/userlist.txt", folder, "db1", '"linkgate" "<linkgate-password>"\n');
  const config = writeDocumented("/etc/pgbouncer/pgbouncer.ini", folder);
  const pooler = new Program(PGBOUNCER, [config], UNPRIVILEGED);
  await pooler.says(/process up/, "stderr");
  return pooler;
}

export type DatabaseMachine = ReturnType<typeof startDatabaseMachine>;

/** Starts etcd and Patroni, which starts PostgreSQL. */
export function startDatabaseMachine(name: Machine) {
  const folder = createMachineFolder(name);
  const config = writeDocumented("/etc/patroni/config.yml", folder, name);
  const pidFile = `${folder}/var/lib/postgresql/15/linkgate/postmaster.pid`;
  const startPrograms = () => [
    startEtcd(name, folder),
    new Program("/usr/bin/patroni", [config], { cwd: folder, ...UNPRIVILEGED }),
  ];
  let programs = startPrograms();

  const postmaster = () => Number.parseInt(readFileSync(pidFile, "utf8"), 10);

  /** PostgreSQL is no child of Patroni. */
  async function postgres(): Promise<number[]> {
    if (!existsSync(pidFile)) return [];
    return [postmaster(), ...(await childrenOf(postmaster()))];
  }

  // It would outlive a run that crashes.
  process.once("exit", () => existsSync(pidFile) && send(postmaster(), "SIGKILL"));
  return {
    name,
    folder,
    /** Sends a signal to all processes of the machine, as if it lost its power, froze or went on. */
    async signal(signal: NodeJS.Signals): Promise<void> {
      for (const { pid } of programs) send(pid, signal);
      for (const pid of await postgres()) send(pid, signal);
    },
    start(): void {
      programs = startPrograms();
    },
    output: () => programs.map(({ stdout, stderr }) => (stdout + stderr).slice(-3000)).join("\n"),
  };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}
