import { NewerSchema } from "../adapters/database/migrations/migrate.ts";

/** What stops the server from starting and an operator can fix: one sentence, shown without a stack. */
export class StartupError extends Error {
  override readonly name = "StartupError";
}

type SystemError = Error & { code?: string; hostname?: string; path?: string; errors?: Error[] };

/** Says why a setting's host and port cannot be listened on. */
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
      const hint = setting === "PORT" ? `Try PORT=${other} npm start` : "Choose another METRICS_PORT";
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

const UNREACHABLE: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ENOTFOUND: "host not found",
  EAI_AGAIN: "host not found",
  ETIMEDOUT: "timed out",
  EHOSTUNREACH: "host unreachable",
  "28P01": "wrong user or password", // PostgreSQL invalid_password
  "28000": "the user doesn't exist or can't log in", // PostgreSQL invalid_authorization_specification
  "3D000": "the database doesn't exist; create it first", // PostgreSQL invalid_catalog_name
  "53300": "too many connections", // PostgreSQL too_many_connections
  "57P03": "the server is starting", // PostgreSQL cannot_connect_now
  ER_ACCESS_DENIED_ERROR: "wrong user or password",
  ER_ACCESS_DENIED_NO_PASSWORD_ERROR: "wrong user or password",
  ER_DBACCESS_DENIED_ERROR: "the user has no access to the database",
  ER_BAD_DB_ERROR: "the database doesn't exist; create it first",
  ER_CON_COUNT_ERROR: "too many connections",
  SQLITE_CANTOPEN: "the file cannot be opened",
  SQLITE_NOTADB: "the file is not a SQLite database",
  SQLITE_READONLY: "the file is read-only",
};
const TIMEOUT = /timeout expired|Timeout acquiring a connection/;

/** Says in one sentence why the database or a file cannot be used; undefined if the error is anything else. */
export function describeStartupError(error: unknown, databaseUrl?: string): string | undefined {
  if (error instanceof NewerSchema) return error.message;
  const { code = "", message, path, cause, errors } = error as SystemError;
  const reason = UNREACHABLE[code] ?? (TIMEOUT.test(message) ? "timed out" : undefined);
  if (reason) return `DATABASE_URL: cannot connect to ${placeOf(databaseUrl)} (${reason}).`;
  if (path && (code === "EACCES" || code === "EROFS" || code === "EPERM"))
    return `Cannot write ${path}: permission denied.`;
  const inner = cause ?? errors?.[0]; // Node tries every address of a host name and collects the errors
  return inner ? describeStartupError(inner, databaseUrl) : undefined;
}

/** Names the database without its credentials. */
function placeOf(databaseUrl: string | undefined): string {
  const url = databaseUrl ? URL.parse(databaseUrl) : null;
  if (!url) return "the database";
  if (url.protocol === "sqlite:") return url.pathname;
  return `${url.protocol}//${url.host}${url.pathname}`;
}
