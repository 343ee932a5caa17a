import { isDuplicate, isMissingValue } from "./engine.ts";
import { isConflict, isConnectionLost, isDiskFull, isReadOnly, isTimeout } from "./outages.ts";

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

// Foreign keys, for example.
const CONSTRAINT = /^(SQLITE_CONSTRAINT|23\d{3}$|ER_(NO_REFERENCED_ROW|ROW_IS_REFERENCED|BAD_NULL))/;

/** Returns why a statement failed; undefined for a violated constraint, and for an error that isn't the database's. */
export function errorKindOf(error: unknown): ErrorKind | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  if (isDiskFull(error)) return "disk_full";
  if (isReadOnly(error)) return "read_only";
  if (code === "ERR_POOL_BUSY") return "pool_busy";
  if (isTimeout(error) || (error as Error | undefined)?.name === "KnexTimeoutError") return "timeout";
  if (isConnectionLost(error)) return "connection";
  if (isConflict(error)) return "conflict";
  return code === undefined || isConstraintViolation(error, String(code)) ? undefined : "other";
}

function isConstraintViolation(error: unknown, code: string): boolean {
  return CONSTRAINT.test(code) || isDuplicate(error) || isMissingValue(error);
}
