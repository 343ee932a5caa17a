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

export type DegradedStates = ReturnType<typeof createDegradedStates>;

// A lost connection by itself is replaced.
const LOST_MAX = 3;
// Some statements may succeed meanwhile.
const END_MS = 1000;

/** Logs each degraded state once when it begins, with its cause, and once when it ends. */
export function createDegradedStates(log: Pick<Log, "error" | "info">) {
  const active = new Map<string, { began: number; failedAt: number }>();
  let lost = 0;

  function begin(state: DegradedState, err: unknown): void {
    const failedAt = performance.now();
    const { began } = active.get(state) ?? {};
    if (began === undefined) log.error({ state, err }, STATES[state][0]);
    active.set(state, { began: began ?? failedAt, failedAt });
  }

  function end(state: DegradedState): void {
    const now = performance.now();
    const { began, failedAt = now } = active.get(state) ?? {};
    if (began === undefined || now - failedAt < END_MS) return;
    active.delete(state);
    log.info({ state, seconds: Math.round((now - began) / 1000) }, STATES[state][1]);
  }

  const states = {
    /** Whether `succeed` has to be called: for most statements, nothing has failed. */
    hasFailed: false,
    begin,
    end,
    has: (state: DegradedState): boolean => active.has(state),
    values: () => Object.fromEntries(Object.keys(STATES).map((state) => [state, Number(active.has(state))])),

    /** Takes the error of a statement. */
    fail(kind: ErrorKind, error: unknown): void {
      states.hasFailed = true;
      if (kind === "read_only" || kind === "disk_full") begin(kind, error);
      if ((kind === "connection" || kind === "timeout") && ++lost >= LOST_MAX) begin("database", error);
    },

    /** Takes each statement that succeeded. To get a connection isn't an answer. */
    succeed(operation: Operation): void {
      if (operation === "acquire") return;
      lost = 0;
      states.hasFailed = active.size > 0;
      end("database");
      if (!["insert", "update", "delete"].includes(operation)) return;
      end("read_only");
      end("disk_full");
    },
  };
  return states;
}
