import { execFileSync } from "node:child_process";
import path from "node:path";

/** Compiles a library for LD_PRELOAD into a folder, and returns its path; undefined if this machine can't. */
export function compilePreload(source: string, folder: string): string | undefined {
  const library = path.join(folder, `${path.basename(source, ".c")}.so`);
  try {
    execFileSync("gcc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], { stdio: "ignore" });
    return library;
  } catch {
    return undefined;
  }
}
