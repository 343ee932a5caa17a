import { pino } from "pino";
import { toLoggedError } from "./log-errors.ts";

export type Log = Pick<
  ReturnType<typeof pino>,
  "info" | "warn" | "error" | "debug" | "fatal" | "isLevelEnabled"
>;

/** Creates a logger that writes JSON lines to stdout. Log chosen fields only, never a header, query or body. */
export function createLog(level: string): Log {
  return pino({
    level,
    base: null,
    serializers: { err: (error: unknown) => toLoggedError(error) },
    formatters: { level: (label) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
