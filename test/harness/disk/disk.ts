import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { compilePreload } from "../preload.ts";

export type Disk = NonNullable<ReturnType<typeof createDisk>>;

/**
 * Creates a disk on which a test controls how the write-ahead logs of programs are synced; undefined if this machine can't
 * compile it.
 */
export function createDisk() {
  const preload = compilePreload(path.join(import.meta.dirname, "disk.c"));
  if (!preload) return undefined;
  const { folder, library } = preload;
  const [state, counted] = [path.join(folder, "state"), path.join(folder, "syncs")];
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
