import path from "node:path";
import type { Knex } from "knex";
import { SqliteClient } from "./sqlite/client.ts";

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
  return path.resolve(url.slice("sqlite:".length));
}

/** What Knex is given for a `DATABASE_URL`. */
export function knexConfig(url: string): Knex.Config {
  // An error names the statement, never its values: they may be what the log must not hold.
  const common = { compileSqlOnError: false };
  switch (engineOf(url)) {
    case "sqlite":
      return {
        ...common,
        client: SqliteClient as unknown as typeof Knex.Client,
        connection: { filename: sqliteFile(url) },
        useNullAsDefault: true,
      };
    default:
      throw new TypeError("only sqlite: is supported by this version");
  }
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
