import type { ErrorKind } from "../../adapters/database/errors.ts";
import type { Operation } from "../../adapters/database/statement-observer.ts";
import type { Log } from "../log.ts";

const STATES = {
  database: ["the database can't be reached, or doesn't answer in time", "the database can be reached again"],
  read_only: ["the database is read-only, so writes fail", "the database is writable again"],
  disk_full: ["the database is out of space, so writes fail", "the database has space again"],
  redis: ["Redis is unavailable; each process applies rate limits by itself", "Redis is available again"],
} as const;
type DegradedState = keyof typeof STATES;
const DATABASE_STATES: DegradedState[] = ["database", "read_only", "disk_full"];

export type DegradedStates = ReturnType<typeof createDegradedStates>;

// A lost connection by itself is replaced.
const LOST_MAX = 3;
// Some statements may succeed meanwhile.
const END_MS = 1000;

/** Logs each degraded state once when it begins, with its cause, and once when it ends. */
export function createDegradedStates(log: Pick<Log, "error" | "info">) {
  const active = new Map<string, { began: number; failedAt: number }>();
  let lost = 0;

  /** An error begins the state, and its absence ends it. */
  function report(state: DegradedState, err?: unknown): void {
    const now = performance.now();
    const known = active.get(state);
    if (err !== undefined) {
      if (!known) log.error({ state, err }, STATES[state][0]);
      active.set(state, { began: known?.began ?? now, failedAt: now });
    } else if (known && now - known.failedAt >= END_MS) {
      active.delete(state);
      log.info({ state, seconds: Math.round((now - known.began) / 1000) }, STATES[state][1]);
    }
  }

  return {
    values: () => Object.fromEntries(Object.keys(STATES).map((state) => [state, Number(active.has(state))])),

    /** Takes the result of each use of Redis. */
    redis: (error?: unknown) => report("redis", error),

    /** Takes the error of a statement. */
    fail(kind: ErrorKind, error: unknown): void {
      if (kind === "read_only" || kind === "disk_full") report(kind, error);
      if ((kind === "connection" || kind === "timeout") && ++lost >= LOST_MAX) report("database", error);
    },

    /** Takes each statement that succeeds after a failure. Returns whether the database is in no degraded state any more. */
    succeed(operation: Operation): boolean {
      if (operation === "acquire") return false; // no answer of the database
      lost = 0;
      report("database");
      if (["insert", "update", "delete"].includes(operation)) {
        report("read_only");
        report("disk_full");
      }
      return !DATABASE_STATES.some((state) => active.has(state));
    },
  };
}
