import { spawnSync } from "node:child_process";
import path from "node:path";
import { temporaryFolder } from "./folder.ts";

/** Compiles a library for LD_PRELOAD into a temporary folder; undefined if this machine can't. */
export function compilePreload(source: string) {
  const name = path.basename(source, ".c");
  const folder = temporaryFolder(name);
  const library = path.join(folder, `${name}.so`);
  const { status } = spawnSync("gcc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  return status === 0 ? { folder, library } : undefined;
}
