import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { Program, ROOT } from "../program.ts";

export const CAN_ISOLATE = spawnSync("unshare", ["--mount", "--net", "true"]).status === 0;

/** A machine that has Node and npm, and neither the repository nor, unless it is online, a network. */
export type Machine = { folder: string; run(script: string, isOnline?: boolean): Program };

/** @param node the file of the Node that the machine has */
export function createMachine(folder: string, node: string): Machine {
  const bin = path.join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  cpSync(node, path.join(bin, "node"));
  for (const name of ["npm", "npx"]) symlinkSync(fileOf(name), path.join(bin, name));
  const { NODE_EXTRA_CA_CERTS = "" } = process.env;
  const settings = {
    HOME: folder,
    PATH: `${bin}:/usr/bin:/bin`,
    // How this machine reaches its registry.
    NODE_EXTRA_CA_CERTS,
    npm_config_userconfig: path.join(homedir(), ".npmrc"),
    npm_config_cache: path.join(folder, "cache"),
    // By default, npm waits five minutes for a response that has stalled.
    npm_config_fetch_timeout: "20000",
    npm_config_fetch_retry_mintimeout: "1000",
  };
  return {
    folder,
    run(script, isOnline = false) {
      const loopback = isOnline ? "" : "/usr/sbin/ip link set lo up\n";
      const prepare = `mount -t tmpfs tmpfs '${ROOT}'\n${loopback}cd '${folder}'\n`;
      const spaces = isOnline ? ["--mount"] : ["--mount", "--net"];
      return new Program("unshare", [...spaces, "sh", "-euc", prepare + script], { settings, cwd: "/" });
    },
  };
}

function fileOf(program: string): string {
  const { stdout } = spawnSync("sh", ["-c", `readlink -f "$(command -v ${program})"`], { encoding: "utf8" });
  return stdout.trim();
}
