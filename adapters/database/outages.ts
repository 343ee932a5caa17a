type DatabaseError = { code?: unknown; errno?: unknown; message?: unknown };

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
  "ERR_DATABASE_FAILED", // of a SQLite database
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

const READ_ONLY_CODES = new Set([
  "25006", // PostgreSQL read_only_sql_transaction
  "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", // 1792
  "ER_READ_ONLY_MODE", // 1836
]);
const OPTION_PREVENTS_STATEMENT = 1290;

/** Returns whether a write was refused because the server is read-only, as a replica is, and a primary that was demoted. */
export function isReadOnly(error: unknown): boolean {
  const { code, errno, message } = (error ?? {}) as DatabaseError;
  const isOption = errno === OPTION_PREVENTS_STATEMENT && /read.only/i.test(String(message));
  return isOption || READ_ONLY_CODES.has(String(code));
}
