import { close, closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import path from "node:path";

/** Makes the write-ahead log of a SQLite database durable without blocking the event loop. */
export type Disk = {
  /** Resolves when everything committed before the call survives a power cut. At most `MAX_SYNCS` concurrent calls. */
  sync(): Promise<void>;
  close(): void;
};

/** The maximum number of concurrent syncs. */
export const MAX_SYNCS = 2;

/** Syncs a disk and counts the pending syncs. */
export type Syncs = {
  pending(): number;
  /** Resolves when this sync and all earlier ones have succeeded. */
  sync(): Promise<void>;
};

/** Orders the syncs of a disk. The log is recovered in order: after a lost group, all later groups are lost, too. */
export function createSyncs(disk: Disk): Syncs {
  let count = 0;
  let last = Promise.resolve();
  return {
    pending: () => count,
    sync() {
      count++;
      last = Promise.all([disk.sync(), last]).then(() => {});
      return last.finally(() => count--);
    },
  };
}

/** Opens the write-ahead log of an open database. */
export function createDisk(filename: string): Disk {
  // One descriptor per sync: Linux reports a write error once to each open file, and every sync must see it.
  const logs = Array.from({ length: MAX_SYNCS }, () => openSync(`${filename}-wal`, "r"));
  const idle = [...logs];
  syncDirectory(path.dirname(filename));
  return {
    sync: () =>
      new Promise((resolve, reject) => {
        const log = idle.pop() as number;
        fdatasync(log, (error) => {
          idle.push(log);
          if (error) reject(error);
          else resolve();
        });
      }),
    close: () => {
      for (const log of logs) close(log);
    },
  };
}

/** Syncs a directory: without that, a file that was just created may be missing after a power cut. */
function syncDirectory(directory: string): void {
  if (process.platform === "win32") return; // Windows cannot open a directory
  const handle = openSync(directory, "r");
  fsyncSync(handle);
  closeSync(handle);
}

/** For databases with `synchronous=normal`: never waits for the disk. */
export const NO_DISK: Disk = { sync: async () => {}, close() {} };
