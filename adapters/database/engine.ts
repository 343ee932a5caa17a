import path from "node:path";
import type { Knex } from "knex";
import pg from "pg";
import { PostgresClient } from "./postgres.ts";
import { SqliteClient } from "./sqlite/client.ts";

/** The database systems that are supported; what differs between them is written in this file and in `sqlite/`. */
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
  return path.resolve(url.slice("sqlite:".length).split("?", 1)[0] as string);
}

/** `?synchronous=normal` gives durability up for speed: a power cut may lose the last commits. */
function isDurable(url: string): boolean {
  return !/\?synchronous=normal$/i.test(url);
}

// Per process; a hundred connections is PostgreSQL's default for all of them together.
const POOL = { min: 0, max: 10 };
const CONNECT_TIMEOUT_MS = 5000;

/** What Knex is given for a `DATABASE_URL`. */
export function knexConfig(url: string): Knex.Config {
  // An error names the statement, never its values: they may be what the log must not hold.
  const common = { compileSqlOnError: false, acquireConnectionTimeout: 10_000 };
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
          connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
          keepAlive: true,
          types: numbersForBigints,
        },
        pool: POOL,
      };
    case "mysql":
      return {
        ...common,
        client: "mysql2",
        connection: {
          uri: url.replace(/^mariadb:/, "mysql:"),
          charset: "utf8mb4",
          connectTimeout: CONNECT_TIMEOUT_MS,
        } as Knex.MySql2ConnectionConfig,
        pool: { ...POOL, afterCreate: configureMysql },
      };
  }
}

const INT8 = 20; // the type's OID

/** Our bigints are milliseconds and counts: far below 2^53. */
const numbersForBigints = {
  getTypeParser: (oid: number, format?: string) =>
    oid === INT8 && format !== "binary" ? Number : pg.types.getTypeParser(oid, format as "text"),
};

type MysqlConnection = { query(sql: string, done: (error: unknown) => void): void };

function configureMysql(connection: MysqlConnection, done: (error: unknown, connection: unknown) => void) {
  // Read committed: what a transaction reads after it has waited for a lock is what the holder wrote.
  const settings = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
  connection.query(settings, (error) => {
    if (error) return done(error, connection);
    connection.query("SET SESSION sql_mode = 'TRADITIONAL'", (failed) => done(failed, connection));
  });
}

/** SQL that tells whether a column holds a text, compared byte by byte: column, then text. */
export function holdsText(engine: Engine): string {
  return engine === "postgres" ? "strpos(??, ?) > 0" : "instr(??, ?) > 0";
}

/** SQL that tells whether a column holds the text of another one, compared byte by byte: column, then column. */
export function holdsColumn(engine: Engine): string {
  return engine === "postgres" ? "strpos(??, ??) > 0" : "instr(??, ??) > 0";
}

/** The value that an upsert could not insert, for its update: a column. */
export function incoming(engine: Engine, column: string): string {
  return engine === "mysql" ? `values(${column})` : `excluded.${column}`;
}

type DatabaseError = { code?: unknown; errno?: unknown; message?: unknown; constraint?: unknown };

const DUPLICATE_CODES = new Set([
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
  "23505", // PostgreSQL unique_violation
  "ER_DUP_ENTRY",
]);

/** Whether a statement failed because a unique value is taken. */
export function isDuplicate(error: unknown): boolean {
  return DUPLICATE_CODES.has(String((error as DatabaseError)?.code));
}

/** The columns or the constraint that a duplicate violates; never a value. */
export function violated(error: unknown): string {
  const { constraint, message } = error as DatabaseError;
  if (constraint) return String(constraint);
  const [, name = ""] = /(?:constraint failed: |for key ')([^']*)'?$/.exec(String(message)) ?? [];
  return name;
}

// Rolled back as a whole by the database, to let somebody else through: the same again may well succeed.
const CONFLICT_CODES = new Set([
  "SQLITE_BUSY",
  "SQLITE_BUSY_SNAPSHOT",
  "40001", // PostgreSQL serialization_failure
  "40P01", // PostgreSQL deadlock_detected
  "ER_CHECKREAD", // MariaDB 1020, a snapshot that is too old
  "ER_LOCK_WAIT_TIMEOUT", // 1205
  "ER_LOCK_DEADLOCK", // 1213
]);

/** Whether a transaction was undone because of another one. */
export function isConflict(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as DatabaseError;
  return CONFLICT_CODES.has(String(code)) || errno === 1020;
}

const AWAY_CODES = new Set([
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

/** Whether the database cannot be reached, or the connection was cut: what a statement did is not known. */
export function isAway(error: unknown): boolean {
  const { code, message } = (error ?? {}) as DatabaseError;
  return (
    AWAY_CODES.has(String(code)) ||
    /Connection terminated|timeout expired|Timeout acquiring a connection|connection is in closed state|is not queryable|Connection lost/i.test(
      String(message),
    )
  );
}

const DISK_FULL_CODES = new Set([
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE", // a quota is used up
  "SQLITE_IOERR_SHMSIZE", // no space for the index of the log
  "53100", // PostgreSQL disk_full
  "ER_DISK_FULL", // 1021
  "ER_RECORD_FILE_FULL", // 1114, also where a tablespace cannot grow
]);

/** Returns whether a write was rolled back because the database is out of space. Reads still succeed. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL_CODES.has(String((error as DatabaseError)?.code));
}

// MySQL's and MariaDB's default collations ignore case, and even their binary ones ignore spaces at the end. The two have
// different names for one that ignores nothing; each reads the comment that is meant for it.
const BYTE_BY_BYTE = "/*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

/** A key column: compared byte by byte on every engine. */
export function keyColumn(table: Knex.CreateTableBuilder, name: string, length: number, engine: Engine) {
  if (engine !== "mysql") return table.string(name, length);
  return table.specificType(name, `varchar(${length}) character set utf8mb4 collate ${BYTE_BY_BYTE}`);
}
