import type Sqlite from "better-sqlite3";

// Far above the number of different statements that the service has; lists with filters make new ones.
const MAX = 500;

const caches = new WeakMap<Sqlite.Database, Map<string, Sqlite.Statement>>();

/** The statement for a text, prepared once per connection. */
export function prepared(connection: Sqlite.Database, sql: string): Sqlite.Statement {
  const cache = caches.get(connection) ?? new Map<string, Sqlite.Statement>();
  caches.set(connection, cache);
  const known = cache.get(sql);
  if (known) return known;
  if (cache.size >= MAX) cache.clear();
  const statement = connection.prepare(sql);
  cache.set(sql, statement);
  return statement;
}
