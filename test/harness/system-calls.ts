import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { ExecutionContext } from "ava";
import { Program, type ProgramOptions, ROOT } from "./program.ts";

const STRACE = "/usr/bin/strace";

/** Whether strace is installed and may trace other processes. */
export const HAS_STRACE = spawnSync(STRACE, ["-o", "/dev/null", "true"]).status === 0;

const CALLS = "mkdir,openat,link,rename,pwrite64,fsync,fdatasync,accept4";
const PATH = /"([^"]*)"|\d<([^>]*)>/g;

export function startTraced(trace: string, words: string[], options: ProgramOptions): Program {
  const node = [process.execPath, "--import", `${ROOT}server/runtime.js`, ...words];
  const flags = ["-f", "-y", "-qq", "-s", "0", "--seccomp-bpf", "-e", `trace=${CALLS}`, "-o", trace];
  return new Program(STRACE, [...flags, ...node], options);
}

/**
 * Reads the system calls that have succeeded, in this order: each connection that was accepted, and calls with files in a
 * folder, whose names are relative to it. Digits at the end of a name, which are the ID of a process, are left out.
 */
export function readCalls(trace: string, folder: string): string[] {
  const begun = new Map<string, string>();
  const calls: string[] = [];
  for (const line of readFileSync(trace, "utf8").split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? [];
    // Calls of several threads overlap.
    if (text.endsWith("<unfinished ...>")) begun.set(thread, text);
    const call = text.replace(/^<\.\.\. \w+ resumed>/, () => begun.get(thread) ?? "");
    if (!/ = \d/.test(call)) continue;
    const [name = ""] = /^\w+/.exec(call.replace(/^fdatasync/, "fsync")) ?? [];
    const files = [...call.slice(0, call.lastIndexOf(" = ")).matchAll(PATH)]
      .map(([, quoted, opened]) => path.relative(folder, quoted ?? opened ?? "").replace(/\.\d+$/, "") || ".")
      .filter((file) => !file.startsWith(".."));
    if (name === "accept4" || files.length > 0) calls.push([name, ...files].join(" "));
  }
  return calls;
}

/** Asserts that calls were made one after the other. */
export function isInOrder(t: ExecutionContext, calls: string[], expected: string[]): void {
  let index = -1;
  const found = expected.filter((call) => {
    index = calls.indexOf(call, index + 1);
    return index >= 0;
  });
  t.deepEqual(found, expected, calls.join("\n"));
}
