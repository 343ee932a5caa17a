import { pino } from "pino";

export type Log = Pick<ReturnType<typeof pino>, "info" | "warn" | "error" | "debug" | "fatal">;

/** JSON lines on stdout. What is logged is chosen field by field; no header, query or body ever is. */
export function createLog(level: string): Log {
  return pino({
    level,
    base: undefined,
    formatters: { level: (label) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  });
}
