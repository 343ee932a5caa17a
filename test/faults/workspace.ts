import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { ROOT } from "../harness/program.ts";
import { filesOfRepository } from "../harness/release/package.ts";

/** A copy of the checkout, to which faults are applied. */
export type Copy = ReturnType<typeof createCopy>;

/** Copies the checkout with all uncommitted changes, and links its packages. */
export function createCopy(folder: string) {
  for (const file of filesOfRepository()) cpSync(path.join(ROOT, file), path.join(folder, file));
  mkdirSync(path.join(folder, "node_modules"));
  // A copy has a cache of its own, so nothing that was compiled with a fault outlives it.
  for (const name of readdirSync(path.join(ROOT, "node_modules")).filter((name) => name !== ".cache"))
    symlinkSync(path.join(ROOT, "node_modules", name), path.join(folder, "node_modules", name));
  const git = (...words: string[]) =>
    spawnSync("git", ["apply", ...words], { cwd: folder, encoding: "utf8" });
  return {
    folder,
    /** Applies a patch. Returns why it can't be applied, and then changes nothing. */
    apply(patch: string): string | undefined {
      const { status, stderr } = git(patch);
      if (status === 0) return undefined;
      const files = [...stderr.matchAll(/^error: (?:patch failed: )?([^ :]+):/gm)].map(([, file]) => file);
      return files.length > 0 ? `${[...new Set(files)].join(", ")} has changed` : stderr.trim();
    },
    revert(patch: string): void {
      const { status, stderr } = git("--reverse", patch);
      if (status !== 0) throw new Error(stderr);
    },
  };
}
