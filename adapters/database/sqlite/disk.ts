import { close, closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import path from "node:path";

/** Makes the log of a SQLite file durable, off the event loop. */
export type Disk = {
  /** Resolves when everything that was committed before the call survives a power cut. Up to `SYNCS` at a time. */
  sync(): Promise<void>;
  close(): void;
};

/** How many syncs may be under way. */
export const SYNCS = 2;

/** The disk under the write-ahead log of a database that is open. */
export function createDisk(filename: string): Disk {
  // One for each sync: Linux tells a failure once to everybody who has the file open, and each of them has to hear of it.
  const logs = Array.from({ length: SYNCS }, () => openSync(`${filename}-wal`, "r"));
  const idle = [...logs];
  syncFolder(path.dirname(filename));
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

/** A file that was just made is found again after a power cut only when its folder is written, too. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return; // a folder cannot be opened there
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}

/** For databases that give durability up: nothing is waited for. */
export const NO_DISK: Disk = { sync: async () => {}, close() {} };
