import { connect } from "node:net";
import { Program, UNPRIVILEGED } from "../harness/program.ts";
import type { Machine } from "./documented.ts";
import { createMachineFolder, documentedUrl, hostOf, writeDocumented } from "./documented.ts";
import { poll, run, startHaproxy } from "./programs.ts";

const NODES = ["db1", "db2", "db3"] as const;
// Only for the first node, before others join.
const PREPARE = `delete from mysql.global_priv where user = '';
flush privileges;
create database linkgate;
create user linkgate@'%' identified by '<linkgate-password>';
grant all on linkgate.* to linkgate@'%';
create user haproxy@'%';
`;

/** Starts three nodes of MariaDB, of which HAProxy passes connections to one. */
export async function startGalera() {
  const nodes: Program[] = [];
  for (const name of NODES) {
    const node = await startNode(name);
    nodes.push(node);
    await poll(
      name,
      () => isListening(hostOf(name)),
      () => node.stderr.slice(-3000),
    );
  }
  const haproxy = startHaproxy("/etc/haproxy/haproxy-galera.cfg", createMachineFolder("application"));
  return {
    url: documentedUrl("mysql"),
    killWriter: async () => nodes[0]?.kill("SIGKILL"),
    async close(): Promise<void> {
      const programs = [...nodes, haproxy];
      for (const program of programs) program.kill("SIGKILL");
      await Promise.all(programs.map(({ ended }) => ended));
    },
  };
}

async function startNode(name: Machine): Promise<Program> {
  const folder = createMachineFolder(name);
  const data = `${folder}/var/lib/mysql`;
  const [user] = (await run(`id -nu ${UNPRIVILEGED.uid ?? ""}`)).split("\n");
  const own = [`--datadir=${data}`, `--user=${user}`];
  await run(`mariadb-install-db --no-defaults --auth-root-authentication-method=normal ${own.join(" ")}`);
  const prepare = writeDocumented("/etc/mysql/prepare.sql", folder, name, PREPARE);
  const first = name === "db1" ? ["--wsrep-new-cluster", `--init-file=${prepare}`] : [];
  const config = writeDocumented("/etc/mysql/mariadb.conf.d/60-galera.cnf", folder, name);
  const socket = [`--socket=${folder}/var/run/mysqld.sock`, `--pid-file=${folder}/var/run/mysqld.pid`];
  return new Program("/usr/sbin/mariadbd", [`--defaults-file=${config}`, ...own, ...socket, ...first], {
    cwd: folder,
  });
}

async function isListening(host: string): Promise<true | undefined> {
  const socket = connect(3306, host);
  const { promise, resolve } = Promise.withResolvers<true | undefined>();
  socket.once("data", () => resolve(true)).once("error", () => resolve(undefined));
  return promise.finally(() => socket.destroy());
}
