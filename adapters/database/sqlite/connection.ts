import { closeSync, fsyncSync, openSync, statSync } from "node:fs";
import path from "node:path";
import Sqlite from "better-sqlite3";
import { LRUCache } from "lru-cache";
import { syncFolder } from "../../durable-files.ts";

export type SqliteSettings = { filename: string; durable: boolean };

/** The write-ahead log that was beside the database when this process opened it. */
export type LogFile = { name: string; device: number; inode: number };

/** How long to wait for another process to release its lock, in milliseconds. */
export const LOCK_WAIT_MS = 5000;
// Half of the default, since the system caches the file as well, and a commit by another connection empties the cache.
const CACHE_KIB = 8000;
// Far above the number of distinct statements in the service. Lists with filters add more.
const MAX_STATEMENTS = 500;

const statements = new WeakMap<Sqlite.Database, LRUCache<string, Sqlite.Statement>>();

/** With FULL, others can read what is committed only when it is on the disk. */
export function synchronousOf({ durable }: SqliteSettings): "FULL" | "NORMAL" {
  return durable ? "FULL" : "NORMAL";
}

/**
 * Leaves checkpoints to the writer. In WAL mode, a commit is complete or absent after a power cut with any setting of
 * `synchronous` (https://sqlite.org/pragma.html#pragma_synchronous); with FULL, it also waits for the disk.
 */
export function openConnection({ filename }: SqliteSettings): Sqlite.Database {
  createPrivately(filename);
  // Of processes that open a new file at the same time, one can switch it to WAL mode.
  const connection = new Sqlite(filename, { timeout: LOCK_WAIT_MS });
  connection.pragma("journal_mode = WAL");
  connection.pragma("synchronous = NORMAL");
  connection.pragma("wal_autocheckpoint = 0");
  // No `mmap_size`: a commit by another connection removes the whole map, and each page is a page fault again.
  connection.pragma(`cache_size = -${CACHE_KIB}`);
  connection.pragma("foreign_keys = ON");
  // SQLite would wait for other processes on the event loop, so callers wait with timers instead.
  connection.pragma("busy_timeout = 0");
  return connection;
}

/**
 * Creates the file for its owner only, unless it exists. SQLite gives the files beside it the same permissions.
 * A process that has a database open must open its files with this copy of SQLite only: closing any descriptor of a
 * file drops all locks of the process on it (https://sqlite.org/howtocorrupt.html, 2.2). The next program that closes
 * the database would then delete the write-ahead log while this process writes to it.
 */
function createPrivately(filename: string): void {
  try {
    const file = openSync(filename, "wx", 0o600);
    fsyncSync(file);
    closeSync(file);
    syncFolder(path.dirname(filename));
  } catch (error) {
    if ((error as { code?: string }).code !== "EEXIST") throw error;
  }
}

/** SQLite may have rolled back already, as on a full disk. If this fails, the next BEGIN's caller tries again. */
export function rollBack(connection: Sqlite.Database): void {
  try {
    if (connection.inTransaction) connection.exec("ROLLBACK");
  } catch {
    // The caller already reports the error that caused the rollback.
  }
}

export function prepared(connection: Sqlite.Database, sql: string): Sqlite.Statement {
  const cache = statements.get(connection) ?? new LRUCache<string, Sqlite.Statement>({ max: MAX_STATEMENTS });
  statements.set(connection, cache);
  const known = cache.get(sql);
  if (known) return known;
  const statement = connection.prepare(sql);
  cache.set(sql, statement);
  return statement;
}

export function findLog(filename: string): LogFile {
  const name = `${filename}-wal`;
  const { dev, ino } = statSync(name);
  return { name, device: dev, inode: ino };
}

/** What is written to a deleted log doesn't survive the process. Throws ERR_LOG_LOST. */
export function verifyLog({ name, device, inode }: LogFile): void {
  const found = statSync(name, { throwIfNoEntry: false });
  if (found?.ino === inode && found.dev === device) return;
  const error = new Error(`another program deleted or replaced ${name}`);
  throw Object.assign(error, { code: "ERR_LOG_LOST" });
}
