import { closeSync, openSync } from "node:fs";
import Sqlite from "better-sqlite3";

/** The file of a database, and whether a write resolves only when it is on the disk. */
export type SqliteSettings = { filename: string; durable: boolean };

// How long to wait for other processes that open the file at the same time: one at a time can switch it to WAL mode.
const OPENING_MS = 5000;
const MAPPED_BYTES = 2 ** 30;
// Half of the default: mapped pages are read in place, so the cache is for pages that change, and those beyond the map.
const CACHE_KIB = 8000;

/**
 * Opens a connection. In WAL mode, a commit is complete or absent after a power cut with any setting of `synchronous`
 * (https://sqlite.org/pragma.html#pragma_synchronous); with FULL, the commit also waits for the disk.
 */
export function openConnection({ filename }: SqliteSettings): Sqlite.Database {
  createPrivately(filename);
  const connection = new Sqlite(filename, { timeout: OPENING_MS });
  connection.pragma("journal_mode = WAL");
  connection.pragma("synchronous = NORMAL");
  // A commit by another process invalidates this process's cache. Memory-mapped pages don't have to be read again.
  connection.pragma(`mmap_size = ${MAPPED_BYTES}`);
  connection.pragma(`cache_size = -${CACHE_KIB}`);
  connection.pragma("foreign_keys = ON");
  // SQLite would wait for other processes on the event loop, so callers wait with timers instead.
  connection.pragma("busy_timeout = 0");
  return connection;
}

/** Creates the file for its owner only, unless it exists. SQLite gives the files beside it the same permissions. */
function createPrivately(filename: string): void {
  closeSync(openSync(filename, "a", 0o600));
}

/**
 * Rolls back a failed transaction unless SQLite already did, as it does on a full disk. If the rollback fails, the next
 * BEGIN fails, too, and its caller tries to roll back again.
 */
export function rollBack(connection: Sqlite.Database): void {
  try {
    if (connection.inTransaction) connection.exec("ROLLBACK");
  } catch {
    // The caller already reports the error that caused the rollback.
  }
}
