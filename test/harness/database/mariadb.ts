import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import path from "node:path";
import { freePort, Program, temporaryFolder } from "../program.ts";

const SERVER = "/usr/sbin/mariadbd";
const INSTALL = "/usr/bin/mariadb-install-db";
export const hasMariadb = existsSync(SERVER) && existsSync(INSTALL);

const GALERA = "/usr/lib/galera/libgalera_smm.so";
export const hasGalera = hasMariadb && existsSync(GALERA);

/** Starts a MariaDB server of a test's own. `url` is that of its database `mysql`, as the user `root`. */
export async function startMariadb(options: string[] = [], isJoining = false) {
  const folder = temporaryFolder("mariadb");
  // rsync copies the files of a joining node, and drops root's permissions first.
  const { username } = userInfo();
  const user = username === "root" ? "mysql" : username;
  if (username === "root") execFileSync("chown", [user, folder]);
  const common = ["--no-defaults", `--datadir=${folder}`, `--user=${user}`];
  if (!isJoining)
    execFileSync(INSTALL, [...common, "--auth-root-authentication-method=normal", "--skip-test-db"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
  const port = await freePort();
  const server = new Program(SERVER, [
    ...common,
    "--bind-address=127.0.0.1",
    `--port=${port}`,
    `--socket=${path.join(folder, "socket")}`,
    "--innodb-flush-log-at-trx-commit=0",
    ...options,
  ]);
  await server.says(/ready for connections/, "stderr");
  return {
    url: `mysql://root@127.0.0.1:${port}/mysql`,
    log: () => server.stderr,
    async remove() {
      server.kill("SIGKILL");
      await server.ended;
    },
  };
}

/** Starts the nodes of a cluster. They are equal from the start, so none has to copy another one's files. */
export async function startGalera(size: number) {
  const addresses: string[] = [];
  for (let node = 0; node < size; node++) addresses.push(`127.0.0.1:${await freePort()}`);
  const nodes: Awaited<ReturnType<typeof startMariadb>>[] = [];
  for (const [index, address] of addresses.entries()) {
    const options = [
      "--wsrep-on=ON",
      `--wsrep-provider=${GALERA}`,
      `--wsrep-cluster-address=gcomm://${addresses.slice(0, index).join(",")}`,
      `--wsrep-provider-options=gmcast.listen_addr=tcp://${address};ist.recv_addr=127.0.0.1:${await freePort()};gcache.size=32M`,
      "--wsrep-node-address=127.0.0.1",
      `--wsrep-node-name=node-${index}`,
      "--wsrep-sst-method=rsync",
      `--wsrep-sst-receive-address=127.0.0.1:${await freePort()}`,
      "--binlog-format=ROW",
      "--innodb-autoinc-lock-mode=2",
    ];
    nodes.push(await startMariadb(options, index > 0));
  }
  return {
    nodes,
    urls: nodes.map(({ url }) => url),
    remove: () => Promise.all(nodes.map((node) => node.remove())),
  };
}
