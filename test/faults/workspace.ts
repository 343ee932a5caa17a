import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** A copy of the checkout, to which faults are applied. */
export type Copy = {
  folder: string;
  /** Applies a patch. Returns why it can't be applied, and then changes nothing. */
  apply(patch: string): string | undefined;
  /** Restores the files that were changed. */
  restore(): void;
};

/** Copies of the checkout in a temporary folder. */
export type Workspace = {
  /** A folder for temporary files of the tests. */
  temporary: string;
  copies: Copy[];
  remove(): void;
};

const CHECKOUT = path.join(import.meta.dirname, "../..");
// In `node_modules`.
const CACHE = ".cache";

/** Copies the last commit with all uncommitted changes, as git worktrees. */
export function createWorkspace(count: number): Workspace {
  const root = mkdtempSync(path.join(realpathSync(tmpdir()), "linkgate-faults-"));
  const folders = Array.from({ length: count }, (_, index) => path.join(root, `copy-${index + 1}`));

  function remove() {
    for (const folder of folders) tryGit(["worktree", "remove", "--force", folder]);
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }

  try {
    const commit = commitOfCheckout(path.join(root, "index"));
    for (const folder of folders) {
      git(["worktree", "add", "--quiet", "--detach", folder, commit]);
      linkPackages(path.join(folder, "node_modules"));
    }
  } catch (error) {
    remove();
    throw error;
  }
  return { temporary: root, copies: folders.map(copyAt), remove };
}

/** Links the installed packages. Each copy has a cache of its own, so nothing that was compiled with a fault outlives it. */
function linkPackages(folder: string): void {
  const installed = path.join(CHECKOUT, "node_modules");
  mkdirSync(folder);
  for (const name of readdirSync(installed)) {
    if (name !== CACHE) symlinkSync(path.join(installed, name), path.join(folder, name));
  }
}

function copyAt(folder: string): Copy {
  const inCopy = { cwd: folder };
  return {
    folder,
    apply(patch) {
      const { status, stderr } = tryGit(["apply", patch], inCopy);
      if (status === 0) return undefined;
      const files = [...stderr.matchAll(/^error: (?:patch failed: )?([^ :]+):/gm)].map(([, file]) => file);
      return files.length > 0 ? `${[...new Set(files)].join(", ")} has changed` : stderr.trim();
    },
    restore: () => void git(["checkout", "--quiet", "--", "."], inCopy),
  };
}

/** Returns a commit of the files in the checkout, untracked ones included. Neither a branch nor the index changes. */
function commitOfCheckout(index: string): string {
  const env = { ...process.env, GIT_INDEX_FILE: index };
  git(["read-tree", "HEAD"], { env });
  git(["add", "--all"], { env });
  const author = ["-c", "user.name=faults", "-c", "user.email=faults@localhost"];
  return git([...author, "commit-tree", "-p", "HEAD", "-m", "faults", git(["write-tree"], { env })]);
}

type Options = { cwd?: string; env?: NodeJS.ProcessEnv };

function tryGit(args: string[], { cwd = CHECKOUT, env }: Options = {}): SpawnSyncReturns<string> {
  return spawnSync("git", args, { cwd, encoding: "utf8", ...(env && { env }) });
}

function git(args: string[], options?: Options): string {
  const { status, stdout, stderr, error } = tryGit(args, options);
  if (status !== 0) throw error ?? new Error(`git ${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}
