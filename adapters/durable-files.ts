import { closeSync, existsSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import path from "node:path";

/** Creates a folder for its owner only, unless it exists, and syncs it and those above it that had to be created. */
export function createFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = path.dirname(folder);
  createFolder(parent);
  // Not with `recursive`, which never returns where the system creates no folders, as in /proc.
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error; // another process was first
  }
  syncFolder(parent);
}

/** Without this, a file that was just created or renamed may be missing after a power cut. */
export function syncFolder(folder: string): void {
  if (process.platform !== "win32") syncFile(folder); // Windows cannot open a folder
}

export function syncFile(name: string): void {
  const handle = openSync(name, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
