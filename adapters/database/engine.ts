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
  { timeoutMs = TIMEOUT_MS, connections = CONNECTIONS, observer }: DatabaseOptions = {},
): Knex.Config {
  // Errors contain the statement without its values, which may be secrets.
  const common = { compileSqlOnError: false, acquireConnectionTimeout: timeoutMs, timeoutMs, observer };
  const pool = { min: 0, max: connections };
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

const CHECK_CODES = new Set([
  "SQLITE_CONSTRAINT_CHECK",
  "23514", // PostgreSQL check_violation
  "ER_CONSTRAINT_FAILED", // MariaDB 4025
  "ER_CHECK_CONSTRAINT_VIOLATED", // MySQL 3819
]);

/** Returns whether a statement violated a check constraint. */
export function isCheckViolation(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as DatabaseError;
  return CHECK_CODES.has(String(code)) || errno === 4025;
}

const ALREADY_CREATED_CODES = new Set([
  "42P07", // PostgreSQL duplicate_table, also for an index
  "42710", // PostgreSQL duplicate_object: a constraint
  "ER_TABLE_EXISTS_ERROR",
  "ER_DUP_KEYNAME",
]);

/** Returns whether a table or an index exists already, because a migration died after creating it. */
export function isAlreadyCreated(error: unknown): boolean {
  return ALREADY_CREATED_CODES.has(String((error as DatabaseError)?.code));
}

/** Returns the columns or the name of the violated constraint, never a value. */
export function violatedConstraint(error: unknown): string {
  const { constraint, message } = error as DatabaseError;
  if (constraint) return String(constraint);
  const [, name = ""] = /(?:constraint failed: |for key ')([^']*)'?$/.exec(String(message)) ?? [];
  return name;
}

// The database rolled back the whole transaction in favor of another one, so a retry is likely to succeed.
const CONFLICT_CODES = new Set([
  "SQLITE_BUSY",
  "SQLITE_BUSY_SNAPSHOT",
  "40001", // PostgreSQL serialization_failure
  "40P01", // PostgreSQL deadlock_detected
  "55P03", // PostgreSQL lock_not_available
  "ER_CHECKREAD", // MariaDB 1020: the row has changed since the snapshot
  "ER_LOCK_WAIT_TIMEOUT", // 1205
  "ER_LOCK_DEADLOCK", // 1213
]);

/** Returns whether a transaction was rolled back because of a concurrent one. */
export function isConflict(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as DatabaseError;
  return CONFLICT_CODES.has(String(code)) || errno === 1020;
}

const CONNECTION_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "PROTOCOL_CONNECTION_LOST",
  "ER_SERVER_SHUTDOWN",
  "ER_CON_COUNT_ERROR",
  "57P01", // PostgreSQL admin_shutdown
  "57P02",
  "57P03", // PostgreSQL cannot_connect_now
  "53300", // PostgreSQL too_many_connections
  "08006",
  "08003",
  "SQLITE_IOERR_FSYNC",
]);

const TIMEOUT_CODES = new Set([
  "ERR_DATABASE_TIMEOUT",
  "ERR_POOL_BUSY",
  "57014", // PostgreSQL query_canceled
  "ER_QUERY_TIMEOUT", // MySQL 3024
]);
const MARIADB_STATEMENT_TIMEOUT = 1969;

/** Returns whether a statement took too long, or was not sent because others do. Its connection may be lost. */
export function isTimeout(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as DatabaseError;
  return TIMEOUT_CODES.has(String(code)) || errno === MARIADB_STATEMENT_TIMEOUT;
}

/** Returns whether the connection failed or was lost, which leaves open whether the statement took effect. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = (error ?? {}) as DatabaseError;
  return (
    CONNECTION_CODES.has(String(code)) ||
    /Connection terminated|timeout expired|Timeout acquiring a connection|connection is in closed state|is not queryable|Connection lost/i.test(
      String(message),
    )
  );
}

const DISK_FULL_CODES = new Set([
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE", // a quota is exceeded
  "SQLITE_IOERR_SHMSIZE", // no space for the index of the write-ahead log
  "53100", // PostgreSQL disk_full
  "ER_DISK_FULL", // 1021
  "ER_RECORD_FILE_FULL", // 1114, also when a tablespace cannot grow
]);

/** Returns whether a write was rolled back because the database is out of space. Reads still succeed. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL_CODES.has(String((error as DatabaseError)?.code));
}

// The default collations of MySQL and MariaDB ignore case, and even their binary ones ignore trailing spaces. They name
// the collation that ignores nothing differently, so each reads the comment meant for it.
const BYTE_BY_BYTE = "/*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

/** Adds a string column that every engine compares byte by byte. */
export function keyColumn(table: Knex.CreateTableBuilder, name: string, length: number, engine: Engine) {
  if (engine !== "mysql") return table.string(name, length);
  return table.specificType(name, `varchar(${length}) character set utf8mb4 collate ${BYTE_BY_BYTE}`);
}
