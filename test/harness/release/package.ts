import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { Program, ROOT } from "../program.ts";

/** Lists the files of the repository, also those that aren't committed yet. */
export function filesOfRepository(): string[] {
  const output = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  return output.trimEnd().split("\n");
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

type Options = NonNullable<ConstructorParameters<typeof Program>[2]>;

/** Runs a program until it exits; returns what it prints. Throws its output if it fails. */
export async function outputOf(command: string, args: string[], options?: Options): Promise<string> {
  const { code, stdout, stderr } = await new Program(command, args, options).ended;
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} exited with ${code}:\n${stdout}${stderr}`);
  return stdout;
}
