import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { outputOf, ROOT } from "../program.ts";

const GO = "/usr/bin/go";
export const HAS_GO = existsSync(GO);
const CACHE = path.join(ROOT, "node_modules/.cache/linkgate");

/** Compiles the files of a Go program with the libraries that Debian installs; returns the path of the executable. */
export async function compileGo(source: string, ...others: string[]): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const executable = path.join(CACHE, path.basename(source, ".go"));
  const settings = { GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOCACHE: path.join(CACHE, "go") };
  await outputOf(GO, ["build", "-o", executable, source, ...others], { settings });
  return executable;
}
