import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import path from "node:path";
import { temporaryFolder } from "../folder.ts";
import { freePort } from "../port.ts";
import { Program } from "../program.ts";

const SERVER = "/usr/sbin/mariadbd";
const INSTALL = "/usr/bin/mariadb-install-db";
export const hasMariadb = existsSync(SERVER) && existsSync(INSTALL);

/** Starts a MariaDB server of a test's own. `url` is that of its database `mysql`, as the user `root`. */
export async function startMariadb() {
  const folder = temporaryFolder("mariadb");
  const common = ["--no-defaults", `--datadir=${folder}`, `--user=${userInfo().username}`];
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
  ]);
  await server.says(/ready for connections/, "stderr");
  return {
    url: `mysql://root@127.0.0.1:${port}/mysql`,
    async remove() {
      server.kill("SIGKILL");
      await server.ended;
    },
  };
}
