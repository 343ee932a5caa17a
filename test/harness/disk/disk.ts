import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { compilePreload } from "../preload.ts";

/** How the disk syncs the write-ahead logs of the programs that use it. */
export type Disk = {
  /** The environment of the programs. */
  environment: Record<string, string>;
  /** Makes syncs wait. */
  hold(): void;
  /** Makes syncs fail with EIO. */
  fail(): void;
  /** Syncs again as usual, those that wait included. */
  work(): void;
  /** Returns how many syncs have begun. */
  syncs(): number;
  remove(): void;
};

/** Creates a disk whose syncs a test controls; undefined if this machine can't compile it. */
export function createDisk(): Disk | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-disk-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const library = compilePreload(path.join(import.meta.dirname, "disk.c"), folder);
  if (!library) {
    remove();
    return undefined;
  }
  const [state, counted] = [path.join(folder, "state"), path.join(folder, "syncs")];
  return {
    environment: { LD_PRELOAD: library, DISK_STATE: state, DISK_SYNCS: counted },
    hold: () => writeFileSync(state, "hold"),
    fail: () => writeFileSync(state, "fail"),
    work: () => writeFileSync(state, "work"),
    syncs: () => statSync(counted, { throwIfNoEntry: false })?.size ?? 0,
    remove,
  };
}
