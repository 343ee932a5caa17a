import { pino } from "pino";
import { reasonOf } from "../adapters/database/errors.ts";
import { createLogOutput, type LogOutput } from "./log-output.ts";
import type { LoggedError } from "./terminal/log-lines.ts";

// The codes of SQLite, MariaDB and MySQL, and the SQLSTATE of PostgreSQL.
const DATABASE_CODE = /^(SQLITE_\w+|ER_\w+|[0-9A-Z]{5})$/;
const MAX_CAUSES = 5;

export type Log = Pick<
  ReturnType<typeof pino>,
  "info" | "warn" | "error" | "debug" | "fatal" | "isLevelEnabled"
> &
  Pick<LogOutput, "loss">;

/** Log chosen fields only, never a header, query or body. */
export function createLog(level: string, output: Pick<LogOutput, "write" | "loss"> = createLogOutput()): Log {
  const options = {
    level,
    base: null,
    serializers: { err: (error: unknown) => toLoggedError(error) },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  return Object.assign(pino(options, output), { loss: output.loss });
}

/** Messages of database errors contain SQL and values, so only what precedes them is shown. */
export function toLoggedError(error: unknown, causes = MAX_CAUSES): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, code, message, stack = "", cause } = error as Error & { code?: unknown; cause?: unknown };
  const isDatabase = typeof code === "string" && DATABASE_CODE.test(code);
  const shown = isDatabase ? reasonOf(error) : message;
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return {
    type: error.constructor?.name || name,
    ...(typeof code === "string" && { code }),
    ...(shown !== undefined && { message: shown }),
    stack: frames.join("\n"),
    ...(cause !== undefined && causes > 0 && { cause: toLoggedError(cause, causes - 1) }),
  };
}
