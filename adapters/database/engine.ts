import { statSync } from "node:fs";
import path from "node:path";
import type { Knex } from "knex";
import pg from "pg";
import { MysqlClient } from "./mysql.ts";
import type { DatabaseOptions } from "./options.ts";
import { PostgresClient } from "./postgres.ts";
import { SqliteClient } from "./sqlite/client.ts";

/** The supported database systems. This file, `postgres.ts`, `mysql.ts`, `sqlite/` and `migrations/` handle their differences. */
export type Engine = "sqlite" | "postgres" | "mysql";

/**
 * Returns the engine of a `DATABASE_URL`: `sqlite:<file>`, `postgres://…` or `mysql://…`, which includes MariaDB.
 * @throws TypeError that names the accepted forms
 */
export function engineOf(url: string): Engine {
  if (url.startsWith("sqlite:")) return "sqlite";
  if (/^postgres(ql)?:\/\//.test(url)) return "postgres";
  if (/^(mysql|mariadb):\/\//.test(url)) return "mysql";
  throw new TypeError("must start with sqlite:, postgres:// or mysql://");
}

/** Returns the absolute path of a `sqlite:` URL, resolved against the working directory. */
export function sqliteFile(url: string): string {
  return path.resolve(url.slice("sqlite:".length).split("?", 1)[0] as string);
}

/** Returns whether a URL is that of a SQLite database that doesn't exist. An empty file is one without content. */
export function isMissing(url: string): boolean {
  return engineOf(url) === "sqlite" && !statSync(sqliteFile(url), { throwIfNoEntry: false })?.size;
}

/** Returns false for `?synchronous=normal`, which is faster, but may lose the last commits on power loss. */
function isDurable(url: string): boolean {
  return !/\?synchronous=normal$/i.test(url);
}

// Per process. PostgreSQL allows a hundred connections in total by default.
const CONNECTIONS = 10;
const CONNECT_TIMEOUT_MS = 5000;
const TIMEOUT_MS = 10_000;

/** Returns Knex's configuration for a `DATABASE_URL`. */
export function knexConfig(
  url: string,
  { timeoutMs = TIMEOUT_MS, observer }: DatabaseOptions = {},
): Knex.Config {
  // Errors contain the statement without its values, which may be secrets.
  const common = { compileSqlOnError: false, acquireConnectionTimeout: timeoutMs, timeoutMs, observer };
  const pool = { min: 0, max: CONNECTIONS };
  const connectTimeoutMs = Math.min(timeoutMs, CONNECT_TIMEOUT_MS);
  switch (engineOf(url)) {
    case "sqlite":
      return {
        ...common,
        client: SqliteClient as unknown as typeof Knex.Client,
        connection: {
          filename: sqliteFile(url),
          durable: isDurable(url),
        } as Knex.Sqlite3ConnectionConfig,
        useNullAsDefault: true,
      };
    case "postgres":
      return {
        ...common,
        client: PostgresClient as unknown as typeof Knex.Client,
        connection: {
          connectionString: url,
          connectionTimeoutMillis: connectTimeoutMs,
          keepAlive: true,
          types: numbersForBigints,
        },
        pool,
      };
    case "mysql":
      return {
        ...common,
        client: MysqlClient as unknown as typeof Knex.Client,
        connection: {
          uri: url.replace(/^mariadb:/, "mysql:"),
          charset: "utf8mb4",
          timezone: "Z", // that of the session
          connectTimeout: connectTimeoutMs,
        } as Knex.MySql2ConnectionConfig,
        pool,
      };
  }
}

const INT8 = 20; // the type's OID

/** Parses bigints as numbers: all are milliseconds or counts, far below 2^53. */
const numbersForBigints = {
  getTypeParser: (oid: number, format?: string) =>
    oid === INT8 && format !== "binary" ? Number : pg.types.getTypeParser(oid, format as "text"),
};

/** Returns SQL that tests whether a column contains a text, byte by byte. Bindings: column, text. */
export function containsText(engine: Engine): string {
  return engine === "postgres" ? "strpos(??, ?) > 0" : "instr(??, ?) > 0";
}

/** Returns SQL that tests whether a column contains another column's text, byte by byte. */
export function containsColumn(engine: Engine, column: string, text: string): string {
  return engine === "postgres" ? `strpos(${column}, ${text}) > 0` : `instr(${column}, ${text}) > 0`;
}

/** Returns SQL for the value of a column that an upsert tried to insert, for use in its update. */
export function insertedValue(engine: Engine, column: string): string {
  return engine === "mysql" ? `values(${column})` : `excluded.${column}`;
}

/**
 * Returns the column that has the webhook's ID while a delivery is pending, and the condition for it. The index on it and
 * the due time contains pending deliveries only: it is partial, except on MariaDB, which has a generated column instead.
 */
export function pendingWebhook(engine: Engine): { column: string; isPending: string } {
  return engine === "mysql"
    ? { column: "pending_webhook_id", isPending: "pending_webhook_id is not null" }
    : { column: "webhook_id", isPending: "due_at is not null" };
}

type DatabaseError = { code?: unknown; errno?: unknown; message?: unknown; constraint?: unknown };

const DUPLICATE_CODES = new Set([
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
  "23505", // PostgreSQL unique_violation
  "ER_DUP_ENTRY",
]);

/** Returns whether a statement violated a unique constraint. */
export function isDuplicate(error: unknown): boolean {
  return DUPLICATE_CODES.has(String((error as DatabaseError)?.code));
}

const MISSING_VALUE_CODES = new Set([
  "SQLITE_CONSTRAINT_NOTNULL",
  "23502", // PostgreSQL not_null_violation
  "ER_BAD_NULL_ERROR", // 1048
]);

/** Returns whether a statement was refused because it stores null in a column that must have a value. */
export function isMissingValue(error: unknown): boolean {
  return MISSING_VALUE_CODES.has(String((error as DatabaseError)?.code));
}

const ALREADY_CREATED_CODES = new Set([
  "42P07", // PostgreSQL duplicate_table, also for an index
  "42710", // PostgreSQL duplicate_object: a constraint
  "ER_TABLE_EXISTS_ERROR",
  "ER_DUP_KEYNAME",
  "ER_FK_DUP_NAME", // MySQL 1826
]);
const MARIADB_FOREIGN_KEY_EXISTS = /errno: 121 /;

/** Returns whether a table, an index or a constraint exists already, because a migration died after creating it. */
export function isAlreadyCreated(error: unknown): boolean {
  const { code, message } = error as DatabaseError;
  return ALREADY_CREATED_CODES.has(String(code)) || MARIADB_FOREIGN_KEY_EXISTS.test(String(message));
}

/** Returns the columns or the name of the violated constraint, never a value. */
export function violatedConstraint(error: unknown): string {
  const { constraint, message } = error as DatabaseError;
  if (constraint) return String(constraint);
  const [, name = ""] = /(?:constraint failed: |for key ')([^']*)'?$/.exec(String(message)) ?? [];
  return name;
}

// The default collations of MySQL and MariaDB ignore case, and even their binary ones ignore trailing spaces. They name
// the collation that ignores nothing differently, so each reads the comment meant for it.
const BYTE_BY_BYTE = "/*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

/** Adds a string column that every engine compares byte by byte. */
export function keyColumn(table: Knex.CreateTableBuilder, name: string, length: number, engine: Engine) {
  if (engine !== "mysql") return table.string(name, length);
  return table.specificType(name, `varchar(${length}) character set utf8mb4 collate ${BYTE_BY_BYTE}`);
}
