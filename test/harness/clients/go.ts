import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { Program, ROOT } from "../program.ts";

const GO = "/usr/bin/go";

/** Whether Go is installed. */
export const HAS_GO = existsSync(GO);

const CACHE = path.join(ROOT, "node_modules/.cache/linkgate");

/** Compiles the files of a Go program with the libraries that Debian installs; returns the path of the executable. */
export async function compileGo(source: string, ...others: string[]): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const executable = path.join(CACHE, path.basename(source, ".go"));
  const compiler = new Program(GO, ["build", "-o", executable, source, ...others], {
    settings: { GO111MODULE: "off", GOPATH: "/usr/share/gocode", GOCACHE: path.join(CACHE, "go") },
  });
  const { code, stderr } = await compiler.ended;
  if (code !== 0) throw new Error(`${source} does not compile:\n${stderr}`);
  return executable;
}
