import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import { freePort } from "../port.ts";
import { Program } from "../program.ts";

const SERVER = "/usr/sbin/mariadbd";
const INSTALL = "/usr/bin/mariadb-install-db";

/** Whether the programs of a MariaDB server are installed. */
export const hasMariadb = existsSync(SERVER) && existsSync(INSTALL);

/** A MariaDB server of a test's own. `url` is that of its database `mysql`, as the user `root`. */
export type MariadbServer = { url: string; remove(): Promise<void> };

/** Starts a new server. */
export async function startMariadb(): Promise<MariadbServer> {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-mariadb-"));
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
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
