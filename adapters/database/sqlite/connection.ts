import Sqlite from "better-sqlite3";

/** Where the file is, and whether an answer waits until the disk has what it tells. */
export type SqliteSettings = { filename: string; durable: boolean };

// Of processes that start at once, one at a time can make the file what it has to be.
const OPENING_MS = 5000;
const MAPPED_BYTES = 2 ** 30;

/**
 * Opens a connection. In WAL mode a commit is whole or absent after a power cut, whatever `synchronous` is
 * (https://sqlite.org/pragma.html#pragma_synchronous); FULL makes the commit itself wait for the disk as well.
 */
export function openConnection(
  { filename }: SqliteSettings,
  synchronous: "FULL" | "NORMAL" = "NORMAL",
): Sqlite.Database {
  const connection = new Sqlite(filename, { timeout: OPENING_MS });
  connection.pragma("journal_mode = WAL");
  connection.pragma(`synchronous = ${synchronous}`);
  // A commit of another process empties this one's cache; mapped, the pages need not be read again.
  connection.pragma(`mmap_size = ${MAPPED_BYTES}`);
  connection.pragma("foreign_keys = ON");
  // Other processes write too, but SQLite would wait for them on the event loop: whoever writes waits beside it.
  connection.pragma("busy_timeout = 0");
  return connection;
}

/**
 * Ends a transaction that failed, if SQLite has not ended it already, as it does on a full disk. If even that fails, so does
 * the next BEGIN, and its caller comes here again.
 */
export function rollBack(connection: Sqlite.Database): void {
  try {
    if (connection.inTransaction) connection.exec("ROLLBACK");
  } catch {
    // The error that led here says why.
  }
}
