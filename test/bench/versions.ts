import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { cleanUp } from "./cleanup.ts";
import type { Measured, Subject } from "./measure.ts";
import { ROOT } from "./ours.ts";
import { compare, type Row } from "./table.ts";
import type { Ours } from "./workspace.ts";

/** A version of linkgate: a name, and the folder of its checkout. */
export type Version = { name: string; root: string };

/** The name of this version among the subjects of a measurement. */
export const OURS = "linkgate";

/** This version, and the one that `--against` names. */
export const versions: Version[] = [{ name: OURS, root: ROOT }];

/** Checks out another version, to be measured beside this one. It uses the packages that are installed here. */
export function addVersion(ref: string): void {
  const root = path.join(mkdtempSync(path.join(tmpdir(), "linkgate-against-")), "checkout");
  const git = (...words: string[]) => execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();
  const name = git("rev-parse", "--short", `${ref}^{commit}`);
  git("worktree", "add", "--detach", root, name);
  cleanUp(() => {
    git("worktree", "remove", "--force", root);
    rmSync(path.dirname(root), { recursive: true, force: true });
  });
  symlinkSync(path.join(ROOT, "node_modules"), path.join(root, "node_modules"));
  copyFileSync(path.join(ROOT, "test/bench/seed.ts"), path.join(root, "test/bench/seed.ts"));
  versions.push({ name, root });
}

/** Starts every version, and returns this one and what is to be measured of each. */
export async function startVersions(
  start: (version: Version) => Promise<Ours>,
  subject: (server: Ours) => Omit<Subject, "name" | "server"> | Promise<Omit<Subject, "name" | "server">>,
): Promise<{ ours: Ours; subjects: Subject[] }> {
  const servers: Ours[] = [];
  const subjects: Subject[] = [];
  for (const version of versions) {
    const started = await start(version);
    servers.push(started);
    subjects.push({ name: version.name, server: started.server, ...(await subject(started)) });
  }
  return { ours: servers[0] as Ours, subjects };
}

/** Returns the rows that compare this version with the one that `--against` names. */
export function againstRows(name: string, measured: Map<string, Measured>): Row[] {
  return versions
    .slice(1)
    .map((version) => compare(`${name} / ${version.name}`, measured, [OURS, version.name]));
}
