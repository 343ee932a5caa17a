import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { importsOf } from "./imports.ts";

const CODE = "{server,adapters,resources,test,docs}/**/*.{ts,js,mjs}";
const IS_CODE = /\.(ts|js|mjs)$/;
// Every test depends on these.
const FOR_ALL = /^(package(-lock)?\.json|test\/runner\/.*|test\/run\.ts)$/;

/** Returns those of the test files that import a file, through others if need be, that differs from a commit. */
export function filesAffectedSince(root: string, commit: string, files: string[]): string[] {
  const changed = changedSince(root, commit);
  if (changed.some((file) => FOR_ALL.test(file))) return files;
  const affected = withImporters(root, changed);
  return files.filter((file) => affected.has(file));
}

/** Lists the files that differ from a commit, those that git ignores excepted. */
function changedSince(root: string, commit: string): string[] {
  const git = (...words: string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" });
  const tracked = git("diff", "--name-only", "--relative", commit);
  const untracked = git("ls-files", "--others", "--exclude-standard");
  return `${tracked}${untracked}`.split("\n").filter(Boolean);
}

/** Returns the files, and those that depend on them. */
function withImporters(root: string, files: string[]): Set<string> {
  const sources = globSync(CODE, { cwd: root });
  const importers = new Map<string, string[]>();
  for (const source of sources) {
    for (const { specifier } of importsOf(root, source)) {
      importers.set(specifier, [...(importers.get(specifier) ?? []), source]);
    }
  }
  const reached = new Set<string>();
  const waiting = files.flatMap((file) =>
    IS_CODE.test(file) ? [file] : [file, ...namedBy(root, sources, file)],
  );
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    waiting.push(...(importers.get(file) ?? []));
  }
  return reached;
}

/** Returns the sources that name a file, as those that read it do. */
function namedBy(root: string, sources: string[], file: string): string[] {
  const name = path.basename(file);
  return sources.filter((source) => readFileSync(path.join(root, source), "utf8").includes(name));
}
