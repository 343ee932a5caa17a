import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";

const SYNCS = 300;
const WRITE_BYTES = 8192;

/** Returns how long the disk takes to sync a write at the end of a file: the median, in milliseconds. */
export function syncMs(file: string): number {
  const handle = openSync(file, "w");
  const page = Buffer.alloc(WRITE_BYTES, 1);
  const times = Array.from({ length: SYNCS }, () => {
    const start = performance.now();
    writeSync(handle, page);
    fdatasyncSync(handle);
    return performance.now() - start;
  });
  closeSync(handle);
  rmSync(file);
  return times.sort((one, other) => one - other)[SYNCS / 2] as number;
}
