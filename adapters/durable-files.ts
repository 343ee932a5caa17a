import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import path from "node:path";

/** Creates a folder for its owner only, unless it exists, and syncs it and those above it that had to be created. */
export function createFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let created = folder; created.length >= first.length; created = path.dirname(created))
    syncFolder(path.dirname(created));
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
