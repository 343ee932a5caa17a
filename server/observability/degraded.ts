import type { ErrorKind } from "../../adapters/database/errors.ts";
import type { Operation } from "../../adapters/database/statement-observer.ts";
import type { Log } from "../log.ts";

const STATES = {
  database: ["the database can't be reached, or doesn't answer in time", "the database can be reached again"],
  read_only: ["the database is read-only, so writes fail", "the database is writable again"],
  disk_full: ["the database is out of space, so writes fail", "the database has space again"],
  redis: ["Redis is unavailable; each process applies rate limits by itself", "Redis is available again"],
} as const;
export type DegradedState = keyof typeof STATES;
export const DEGRADED_STATES = Object.keys(STATES) as DegradedState[];

export type DegradedStates = ReturnType<typeof createDegradedStates>;

const STATE_OF: Partial<Record<ErrorKind, DegradedState>> = {
  connection: "database",
  timeout: "database",
  read_only: "read_only",
  disk_full: "disk_full",
};
// A lost connection by itself is replaced.
const LOST_MAX = 3;
// Some statements may succeed meanwhile.
const END_MS = 1000;
const WRITES: ReadonlySet<Operation> = new Set(["insert", "update", "delete"]);

/** Logs each degraded state once when it begins, with its cause, and once when it ends. */
export function createDegradedStates(log: Pick<Log, "error" | "info">) {
  const active = new Map<DegradedState, { began: number; failedAt: number }>();
  let lost = 0;

  function begin(state: DegradedState, error: unknown): void {
    const now = performance.now();
    const known = active.get(state);
    if (known) known.failedAt = now;
    else {
      active.set(state, { began: now, failedAt: now });
      log.error({ state, err: error }, STATES[state][0]);
    }
  }

  function end(state: DegradedState): void {
    const now = performance.now();
    const known = active.get(state);
    if (!known || now - known.failedAt < END_MS) return;
    active.delete(state);
    log.info({ state, seconds: Math.round((now - known.began) / 1000) }, STATES[state][1]);
  }

  return {
    begin,
    end,
    has: (state: DegradedState): boolean => active.has(state),

    /** Takes the error of a statement. */
    fail(kind: ErrorKind, error: unknown): void {
      const state = STATE_OF[kind];
      if (state && (state !== "database" || ++lost >= LOST_MAX)) begin(state, error);
    },

    /** Takes each statement that succeeded. To get a connection isn't an answer. */
    succeed(operation: Operation): void {
      if (operation === "acquire") return;
      lost = 0;
      if (active.size === 0) return;
      end("database");
      if (!WRITES.has(operation)) return;
      end("read_only");
      end("disk_full");
    },
  };
}
