import path from "node:path";
import type { Knex } from "knex";

/** The database systems that are supported; what differs between them is written in this file alone. */
export type Engine = "sqlite" | "postgres" | "mysql";

/**
 * Reads a `DATABASE_URL`: `sqlite:<file>`, `postgres://…` or `mysql://…` (also for MariaDB).
 * @throws TypeError naming the accepted forms.
 */
export function engineOf(url: string): Engine {
  if (url.startsWith("sqlite:")) return "sqlite";
  if (/^postgres(ql)?:\/\//.test(url)) return "postgres";
  if (/^(mysql|mariadb):\/\//.test(url)) return "mysql";
  throw new TypeError("must start with sqlite:, postgres:// or mysql://");
}

/** The file behind a `sqlite:` address, relative to the working directory. */
export function sqliteFile(url: string): string {
  const file = url.slice("sqlite:".length);
  return file === ":memory:" ? file : path.resolve(file);
}

/** What Knex is given for a `DATABASE_URL`. */
export function knexConfig(url: string): Knex.Config {
  if (engineOf(url) !== "sqlite") throw new TypeError("only sqlite: is supported by this version");
  return {
    client: "better-sqlite3",
    connection: { filename: sqliteFile(url) },
    useNullAsDefault: true,
    // One connection: SQLite has one writer, and a transaction must not wait for itself.
    pool: { min: 1, max: 1, afterCreate: configureSqlite },
  };
}

type SqliteConnection = { pragma(statement: string): unknown };

function configureSqlite(connection: SqliteConnection, done: (error: unknown, connection: unknown) => void) {
  // WAL + FULL: an answered write survives a power cut (https://sqlite.org/pragma.html#pragma_synchronous).
  connection.pragma("journal_mode = WAL");
  connection.pragma("synchronous = FULL");
  connection.pragma("foreign_keys = ON");
  // The administration command writes while the server runs.
  connection.pragma("busy_timeout = 5000");
  done(null, connection);
}

const DUPLICATE_CODES = new Set([
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
  "23505", // PostgreSQL unique_violation
  "ER_DUP_ENTRY",
]);

/** Whether a statement failed because a unique value is taken. */
export function isDuplicate(error: unknown): boolean {
  return DUPLICATE_CODES.has(String((error as { code?: unknown })?.code));
}

/** A key column: compared byte by byte on every engine (MariaDB's default collations ignore case). */
export function keyColumn(table: Knex.CreateTableBuilder, name: string, length: number, engine: Engine) {
  const column = table.string(name, length);
  return engine === "mysql" ? column.collate("ascii_bin") : column;
}
