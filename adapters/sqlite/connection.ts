import type Sqlite from "better-sqlite3";

/** Sets a connection up; every one of the service is set up alike. */
export function configure(connection: Sqlite.Database): Sqlite.Database {
  // WAL + FULL: an answered write survives a power cut (https://sqlite.org/pragma.html#pragma_synchronous).
  connection.pragma("journal_mode = WAL");
  connection.pragma("synchronous = FULL");
  connection.pragma("foreign_keys = ON");
  // Other processes write too: the administration command, further workers.
  connection.pragma("busy_timeout = 5000");
  return connection;
}
