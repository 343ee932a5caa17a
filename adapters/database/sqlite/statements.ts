import type Sqlite from "better-sqlite3";
import { LRUCache } from "lru-cache";

// Far above the number of distinct statements in the service. Lists with filters add more.
const MAX = 500;

const caches = new WeakMap<Sqlite.Database, LRUCache<string, Sqlite.Statement>>();

export function prepared(connection: Sqlite.Database, sql: string): Sqlite.Statement {
  const cache = caches.get(connection) ?? new LRUCache<string, Sqlite.Statement>({ max: MAX });
  caches.set(connection, cache);
  const known = cache.get(sql);
  if (known) return known;
  const statement = connection.prepare(sql);
  cache.set(sql, statement);
  return statement;
}
