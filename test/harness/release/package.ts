import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { outputOf, ROOT } from "../program.ts";

export { outputOf };

/** Lists the files of the repository, also those that aren't committed yet. */
export function filesOfRepository(): string[] {
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  return execFileSync("git", ["ls-files", "-co", "--exclude-standard"], options).trimEnd().split("\n");
}

/** Copies the repository with its packages, so that several tests can build it concurrently. */
export function copyRepository(folder: string): void {
  for (const file of filesOfRepository()) cpSync(path.join(ROOT, file), path.join(folder, file));
  symlinkSync(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
}

/** Builds the tarball in a copy of the repository. Returns its path. */
export async function packProduct(folder: string): Promise<string> {
  const copy = path.join(folder, "repository");
  mkdirSync(copy);
  copyRepository(copy);
  const output = await outputOf("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: copy });
  return path.join(folder, output.trimEnd().split("\n").at(-1) as string);
}
