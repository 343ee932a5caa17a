import Sqlite from "better-sqlite3";

const MAPPED_BYTES = 2 ** 30;

/** Where the file is, and what a commit waits for. */
export type SqliteSettings = { filename: string; synchronous: "FULL" | "NORMAL" };

/** Opens a connection; every one of the service is set up alike. */
export function openConnection({ filename, synchronous }: SqliteSettings): Sqlite.Database {
  const connection = new Sqlite(filename);
  // WAL + FULL: an answered write survives a power cut (https://sqlite.org/pragma.html#pragma_synchronous).
  connection.pragma("journal_mode = WAL");
  connection.pragma(`synchronous = ${synchronous}`);
  // A commit of another connection empties this one's cache; mapped, the pages need not be read again.
  connection.pragma(`mmap_size = ${MAPPED_BYTES}`);
  connection.pragma("foreign_keys = ON");
  // Other processes write too: the administration command, further workers.
  connection.pragma("busy_timeout = 5000");
  return connection;
}
