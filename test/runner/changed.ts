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
  const git = (...words: string[]) => execFileSync("git", words, { cwd: root, encoding: "utf8" });
  const tracked = git("diff", "--name-only", "--relative", commit);
  const untracked = git("ls-files", "--others", "--exclude-standard");
  const affected = new Set(`${tracked}${untracked}`.split("\n").filter(Boolean));
  if ([...affected].some((file) => FOR_ALL.test(file))) return files;
  const sources = globSync(CODE, { cwd: root }).map((source) => ({
    source,
    imported: new Set(importsOf(root, source).map(({ specifier }) => specifier)),
  }));
  // Sources name the other files that they read.
  const isNamed = (file: string, source: string) =>
    !IS_CODE.test(file) && readFileSync(path.join(root, source), "utf8").includes(path.basename(file));
  // The loop also visits the files that it adds.
  for (const file of affected)
    for (const { source, imported } of sources)
      if (imported.has(file) || isNamed(file, source)) affected.add(source);
  return files.filter((file) => affected.has(file));
}
