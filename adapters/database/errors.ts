type DatabaseError = Record<string, unknown>;

/** Returns a check whether an error has one of the codes, or on MariaDB and MySQL one of the numbers. */
export function hasCode(...codes: (string | number)[]): (error: unknown) => boolean {
  const known = new Set<unknown>(codes);
  return (error) => {
    const { code, errno } = (error ?? {}) as DatabaseError;
    return known.has(code) || known.has(errno);
  };
}

/** Returns whether a whole transaction was rolled back in favor of another one, so a retry is likely to succeed. */
export const isConflict = hasCode(
  "SQLITE_BUSY",
  "SQLITE_BUSY_SNAPSHOT",
  "40001", // PostgreSQL serialization_failure
  "40P01", // PostgreSQL deadlock_detected
  "55P03", // PostgreSQL lock_not_available
  "ER_CHECKREAD",
  1020, // MariaDB's ER_CHECKREAD: the row has changed since the snapshot
  "ER_LOCK_WAIT_TIMEOUT", // 1205
  "ER_LOCK_DEADLOCK", // 1213
);

// Of MariaDB and MySQL: too many connections or too little memory (1037 to 1043, 1129, 1135, 1203, 1226), a node of Galera
// that is joining or separated from the others (1047), a shutdown (1053 to 1080, 3168), lost connections (1152 to 1184, 1927,
// 4031), and what proxies say of those that they lost (2002 to 2013). 1153 is a statement that is too large.
const MYSQL_CONNECTION_ERRORS = [
  1037, 1040, 1041, 1043, 1047, 1053, 1077, 1079, 1080, 1129, 1135, 1152, 1158, 1159, 1160, 1161, 1184, 1203,
  1226, 1927, 2002, 2003, 2006, 2013, 3168, 4031,
];

const hasConnectionCode = hasCode(
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "PROTOCOL_CONNECTION_LOST",
  "ERR_DATABASE_FAILED", // of a SQLite database
  ...MYSQL_CONNECTION_ERRORS,
);
// Classes 08 (connection_exception, and all errors of PgBouncer), 53 (insufficient_resources) and operator_intervention.
const CONNECTION_CLASS = /^(?:08...|53...|57P..)$/;
const CONNECTION_MESSAGE =
  /Connection terminated|timeout expired|Timeout acquiring a connection|connection is in closed state|is not queryable|Connection lost/i;

/** Returns whether the connection failed or was lost, which leaves open whether the statement took effect. */
export function isConnectionLost(error: unknown): boolean {
  const { code, syscall, message } = (error ?? {}) as DatabaseError;
  if (isDiskFull(error)) return false;
  if (syscall === "connect" || hasConnectionCode(error)) return true;
  return CONNECTION_CLASS.test(String(code)) || CONNECTION_MESSAGE.test(String(message));
}

/** Returns whether the server ended a statement that took too long. */
export const isCanceled = hasCode(
  "57014", // PostgreSQL query_canceled
  1317, // ER_QUERY_INTERRUPTED
  "ER_QUERY_TIMEOUT", // MySQL 3024
  1969, // MariaDB's ER_STATEMENT_TIMEOUT
);

const hasTimeoutCode = hasCode("ERR_DATABASE_TIMEOUT", "ERR_POOL_BUSY");

/** Returns whether a statement took too long, or was not sent because others do. Its connection may be lost. */
export function isTimeout(error: unknown): boolean {
  return isCanceled(error) || hasTimeoutCode(error);
}

/** Returns whether a write was rolled back because the database is out of space. Reads still succeed. */
export const isDiskFull = hasCode(
  "SQLITE_FULL",
  "SQLITE_IOERR_WRITE", // a quota is exceeded
  "SQLITE_IOERR_SHMSIZE", // no space for the index of the write-ahead log
  "53100", // PostgreSQL disk_full
  "ER_DISK_FULL", // 1021
  "ER_RECORD_FILE_FULL", // 1114, also when a tablespace cannot grow
);

const hasReadOnlyCode = hasCode(
  "25006", // PostgreSQL read_only_sql_transaction
  "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", // 1792
  "ER_READ_ONLY_MODE", // 1836
);
const OPTION_PREVENTS_STATEMENT = 1290;

/** Returns whether the server is read-only, as a replica is, and a primary that was demoted; also of the cause. */
export function isReadOnly(error: unknown): boolean {
  const { errno, message, cause } = (error ?? {}) as DatabaseError;
  if (cause) return isReadOnly(cause);
  const isOption = errno === OPTION_PREVENTS_STATEMENT && /read.only/i.test(String(message));
  return isOption || hasReadOnlyCode(error);
}

export const isDuplicate = hasCode(
  "SQLITE_CONSTRAINT_UNIQUE",
  "SQLITE_CONSTRAINT_PRIMARYKEY",
  "23505", // PostgreSQL unique_violation
  "ER_DUP_ENTRY",
);

/** Handles the error of a write by resolving to `value`, if a unique value already exists. */
export function ifDuplicate<const T>(value: T): (error: unknown) => T {
  return (error) => {
    if (isDuplicate(error)) return value;
    throw error;
  };
}

export const isMissingValue = hasCode(
  "SQLITE_CONSTRAINT_NOTNULL",
  "23502", // PostgreSQL not_null_violation
  "ER_BAD_NULL_ERROR", // 1048
);

const hasAlreadyCreatedCode = hasCode(
  "42P07", // PostgreSQL duplicate_table, also for an index
  "42710", // PostgreSQL duplicate_object: a constraint
  "ER_TABLE_EXISTS_ERROR",
  "ER_DUP_KEYNAME",
  "ER_FK_DUP_NAME", // MySQL 1826
);
const MARIADB_FOREIGN_KEY_EXISTS = /errno: 121 /;

export function isAlreadyCreated(error: unknown): boolean {
  const { message } = error as DatabaseError;
  return hasAlreadyCreatedCode(error) || MARIADB_FOREIGN_KEY_EXISTS.test(String(message));
}

export function violatedConstraint(error: unknown): string {
  const { constraint, message } = error as DatabaseError;
  if (constraint) return String(constraint);
  const [, ...names] = String(message).split(/constraint failed: |for key '/);
  return names.at(-1)?.replace(/'$/, "") ?? "";
}

/** Why statements fail. Violated constraints are expected, and not among them. */
export const ERROR_KINDS = [
  "disk_full",
  "read_only",
  "timeout",
  "pool_busy",
  "connection",
  "conflict",
  "other",
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

const reasons = new WeakMap<object, string>();
const REASON_MAX = 200;
// What follows may be a value, or a name that a statement contains.
const VALUE = /['"`:(=]| named /;

/** Keeps the message of an error of the database before Knex puts the statement in front of it. */
export function keepReason(error: unknown): void {
  if (!(error instanceof Error) || reasons.has(error)) return;
  const message = error.message.slice(0, REASON_MAX);
  const end = message.search(VALUE);
  reasons.set(error, end < 0 ? message : `${message.slice(0, end).trimEnd()} …`);
}

/** Returns the message of an error of a statement up to the first value, if the statement was observed. */
export const reasonOf = (error: object): string | undefined => reasons.get(error);

const CONSTRAINT =
  /^(SQLITE_CONSTRAINT|23\d{3}$|ER_(NO_REFERENCED_ROW|ROW_IS_REFERENCED|BAD_NULL|DUP_ENTRY))/;

/** Returns undefined for a violated constraint, and for an error that isn't the database's. */
export function errorKindOf(error: unknown): ErrorKind | undefined {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (isDiskFull(error)) return "disk_full";
  if (isReadOnly(error)) return "read_only";
  if (code === "ERR_POOL_BUSY") return "pool_busy";
  if (isTimeout(error) || name === "KnexTimeoutError") return "timeout";
  if (isConnectionLost(error)) return "connection";
  if (isConflict(error)) return "conflict";
  return code === undefined || CONSTRAINT.test(String(code)) ? undefined : "other";
}
