import { close, closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import path from "node:path";

/** Makes the log of a SQLite file durable, off the event loop. */
export type Disk = {
  /** Resolves when everything that was committed before the call survives a power cut. */
  sync(): Promise<void>;
  close(): void;
};

/** The disk under the write-ahead log of a database that is open. */
export function createDisk(filename: string): Disk {
  const log = openSync(`${filename}-wal`, "r");
  syncFolder(path.dirname(filename));
  return {
    sync: () =>
      new Promise((resolve, reject) => {
        fdatasync(log, (error) => (error ? reject(error) : resolve()));
      }),
    close: () => close(log),
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
