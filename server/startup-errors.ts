import { sqliteFile } from "../adapters/database/engine.ts";
import { isDiskFull, isReadOnly } from "../adapters/database/errors.ts";
import { UnsupportedEncoding } from "../adapters/database/index.ts";
import {
  IncompatibleSchema,
  MigrationRunning,
  UnfinishedCopy,
} from "../adapters/database/migrations/index.ts";

/** What stops the server from starting and an operator can fix: one sentence, shown without a stack. */
export class StartupError extends Error {
  override readonly name = "StartupError";
}

type SystemError = Error & {
  code?: string;
  hostname?: string;
  path?: string;
  syscall?: string;
  errors?: Error[];
};

export function toListenError(
  error: SystemError,
  setting: "PORT" | "METRICS_PORT",
  port: number,
  host: string,
) {
  const options = { cause: error };
  switch (error.code) {
    case "EADDRINUSE": {
      const other = port === 4000 ? 4001 : 4000;
      const hint =
        setting === "PORT" ? `Set another PORT, such as PORT=${other}` : "Choose another METRICS_PORT";
      return new StartupError(`Port ${port} is in use. ${hint}`, options);
    }
    case "EACCES":
      return new StartupError(`${setting} ${port} needs more privileges. Use a port above 1023.`, options);
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new StartupError(`HOST ${host} cannot be resolved.`, options);
    case "EADDRNOTAVAIL":
      return new StartupError(`HOST ${host} is not an address of this machine.`, options);
    default:
      return error;
  }
}

type Reason = [reason: string, advice: string];

const NOT_REACHED = "Check the host and port, and that the server is running.";
const CREDENTIALS = "Check the user and password.";
const NO_HOST: Reason = ["host not found", "Check the host."];
const NO_RESPONSE: Reason = ["no response in time", "Check the load and the locks of the server."];
const TIMED_OUT: Reason = ["timed out", NOT_REACHED];
const WRONG_PASSWORD: Reason = ["wrong user or password", CREDENTIALS];
const NO_DATABASE: Reason = ["the database doesn't exist", "Create it first."];
const FULL: Reason = ["too many connections", "Raise the server's limit, or use fewer processes."];
const NO_PRIVILEGES: Reason = ["the user lacks privileges", "Grant it all privileges on the database."];
const NO_SPACE: Reason = ["the disk is full", "Make room on it."];
const READ_ONLY: Reason = [
  "the server is read-only, as a standby is",
  "Use the primary, or try again when this server is the primary.",
];
const NO_SHARED_MEMORY: Reason = [
  "the file system has no shared memory",
  "Put the file on a local disk, or use PostgreSQL or MariaDB.",
];
const LOCKED: Reason = ["another session holds a lock", "Wait until it ends, and try again."];
const BROKEN: Reason = ["the file is damaged, or not a SQLite database", "Restore a backup."];

const REASONS: Record<string, Reason> = {
  ECONNREFUSED: ["connection refused", NOT_REACHED],
  ECONNRESET: ["connection reset", NOT_REACHED],
  ENOTFOUND: NO_HOST,
  EAI_AGAIN: NO_HOST,
  ETIMEDOUT: TIMED_OUT,
  ERR_DATABASE_TIMEOUT: NO_RESPONSE,
  EHOSTUNREACH: ["host unreachable", NOT_REACHED],
  "28P01": WRONG_PASSWORD, // PostgreSQL invalid_password
  "28000": ["the user doesn't exist or can't log in", CREDENTIALS], // PostgreSQL invalid_authorization_specification
  "3D000": NO_DATABASE, // PostgreSQL invalid_catalog_name
  "42501": NO_PRIVILEGES, // PostgreSQL insufficient_privilege
  "53300": FULL, // PostgreSQL too_many_connections
  "55P03": LOCKED, // PostgreSQL lock_not_available
  "57014": NO_RESPONSE, // PostgreSQL query_canceled
  "57P03": ["the server is starting", "Try again."], // PostgreSQL cannot_connect_now
  ER_ACCESS_DENIED_ERROR: WRONG_PASSWORD,
  ER_ACCESS_DENIED_NO_PASSWORD_ERROR: WRONG_PASSWORD,
  ER_DBACCESS_DENIED_ERROR: NO_PRIVILEGES,
  ER_TABLEACCESS_DENIED_ERROR: NO_PRIVILEGES,
  ER_BAD_DB_ERROR: NO_DATABASE,
  ER_CON_COUNT_ERROR: FULL,
  ER_TOO_MANY_USER_CONNECTIONS: FULL,
  ER_USER_LIMIT_REACHED: FULL,
  ER_LOCK_WAIT_TIMEOUT: LOCKED,
  SQLITE_BUSY: ["another process locks the file", "Stop that process, or try again."],
  SQLITE_CANTOPEN: ["the file cannot be opened", "Check the permissions of the file and its folder."],
  SQLITE_CORRUPT: BROKEN,
  SQLITE_IOERR: ["the disk reported an error", "Check the disk."],
  SQLITE_IOERR_SHMOPEN: NO_SHARED_MEMORY,
  SQLITE_IOERR_SHMMAP: NO_SHARED_MEMORY,
  SQLITE_IOERR_SHMLOCK: NO_SHARED_MEMORY,
  SQLITE_NOTADB: BROKEN,
  SQLITE_READONLY: ["the file is read-only", "Make the file and its folder writable."],
};
// Errors whose message is for the operator.
const SENTENCES = [IncompatibleSchema, MigrationRunning, UnfinishedCopy, UnsupportedEncoding];
const TIMEOUT = /timeout expired|Timeout acquiring a connection/;

/** Returns undefined if the error is not about the database or a file. */
export function describeStartupError(error: unknown, databaseUrl?: string): string | undefined {
  if (SENTENCES.some((type) => error instanceof type)) return (error as Error).message;
  const { code = "", message, cause, errors } = error as SystemError;
  // SQLite's extended codes begin with the basic one.
  const basic = /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? code;
  const reasons = REASONS[code] ?? REASONS[basic];
  const known = isDiskFull(error) ? NO_SPACE : isReadOnly(error) ? READ_ONLY : reasons;
  const [reason, advice] = known ?? (TIMEOUT.test(message) ? TIMED_OUT : []);
  if (reason) return `DATABASE_URL: cannot ${useOf(databaseUrl)} (${reason}). ${advice}`;
  const sentence = describeFileError(error as SystemError);
  if (sentence) return sentence;
  const inner = cause ?? errors?.[0]; // Node tries every address of a host name and collects the errors
  return inner ? describeStartupError(inner, databaseUrl) : undefined;
}

const FILE_REASONS: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOTDIR: "a part of the path is not a folder",
  ELOOP: "too many symbolic links",
  ENAMETOOLONG: "the name is too long",
  EIO: "the disk reported an error",
};

function describeFileError({ path, code = "", syscall }: SystemError): string | undefined {
  if (code === "ENOSPC" || code === "EDQUOT") return `Cannot write ${path ?? "a file"}: the disk is full.`;
  // Elsewhere, a missing file is a setting that names the wrong one.
  const reason = code === "ENOENT" && syscall === "mkdir" ? "it can't be created there" : FILE_REASONS[code];
  return path === undefined || reason === undefined ? undefined : `Cannot write ${path}: ${reason}.`;
}

export function toFileError(error: unknown): unknown {
  const sentence = describeFileError(error as SystemError);
  return sentence ? new StartupError(sentence, { cause: error }) : error;
}

export function toStartupError(error: unknown, databaseUrl: string): unknown {
  if (error instanceof StartupError) return error;
  const message = describeStartupError(error, databaseUrl);
  return message ? new StartupError(message, { cause: error }) : error;
}

export function describeMissing(databaseUrl: string): string {
  return `DATABASE_URL: ${sqliteFile(databaseUrl)} doesn't exist. Start the server or run "linkgate migrate" to create it.`;
}

function useOf(databaseUrl: string | undefined): string {
  const url = databaseUrl ? URL.parse(databaseUrl) : null;
  if (!url) return "use the database";
  if (url.protocol === "sqlite:") return `use ${url.pathname}`;
  const user = url.username ? `${url.username}@` : "";
  return `connect to ${url.protocol}//${user}${url.host}${url.pathname}`;
}
