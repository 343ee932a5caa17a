import { spawnSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { temporaryFolder } from "../program.ts";

export type Disk = NonNullable<ReturnType<typeof createDisk>>;

/**
 * Creates a disk on which a test controls how the write-ahead logs of programs are synced; undefined if this machine can't
 * compile it.
 */
export function createDisk() {
  const folder = temporaryFolder("disk");
  const [library = "", state = "", counted = ""] = ["disk.so", "state", "syncs"].map((name) =>
    path.join(folder, name),
  );
  const source = path.join(import.meta.dirname, "disk.c");
  const { status } = spawnSync("gcc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  if (status !== 0) return undefined;
  return {
    environment: { LD_PRELOAD: library, DISK_STATE: state, DISK_SYNCS: counted },
    /** Makes syncs wait. */
    hold: () => writeFileSync(state, "hold"),
    /** Makes syncs fail with EIO. */
    fail: () => writeFileSync(state, "fail"),
    /** Syncs again as usual, those that wait included. */
    work: () => writeFileSync(state, "work"),
    /** Returns how many syncs have begun. */
    syncs: () => statSync(counted, { throwIfNoEntry: false })?.size ?? 0,
  };
}
