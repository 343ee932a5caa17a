import { setTimeout as sleep } from "node:timers/promises";
import { type Database, openDatabase } from "./index.ts";

/** Whether a replica is read, and why not. */
export type ReplicaState = {
  isInUse: boolean;
  /** How old what it returns may be, in milliseconds. Infinity until it was compared with the primary. */
  lagMs: number;
  /** Why it isn't read. */
  problem?: Error;
};

/** A streaming replica of a PostgreSQL database, for reads that may be a few seconds old. */
export type Replica = {
  /** The replica's database. Only reads succeed. */
  database: Pick<Database, "lookup">;
  state(): ReplicaState;
  /** Returns how many reads each of the two answered. */
  reads(): { replica: number; primary: number };
  /** Calls the listener when the replica begins to be read, and when it is left out. */
  onChange(listener: (state: ReplicaState) => void): void;
  /**
   * Returns a read of the replica. While the replica is left out, if its read fails, and if it doesn't find anything, the
   * primary is read instead.
   */
  prefer<Found>(fromReplica: Find<Found>, fromPrimary: Find<Found>): Find<Found>;
  close(): Promise<void>;
};

type Find<Found> = (key: string) => Promise<Found | undefined>;
type Position = { takenAt: number; wal: bigint };

/** The longest that a replica may lag behind while it is read. */
const MAX_LAG_MS = 5000;
const CHECK_MS = 1000;
// A visitor waits this long at most until the primary is asked.
const TIMEOUT_MS = 1000;
// Limits memory while the replica lags for long.
const MAX_POSITIONS = 600;

// A commit is acknowledged after the log is flushed up to it. The cast keeps positions beyond 2^53 exact.
const PRIMARY = `select (pg_current_wal_flush_lsn() - '0/0')::text as wal,
  (select system_identifier::text from pg_control_system()) as system`;
const REPLICA = `select pg_is_in_recovery() as "isReplica", (pg_last_wal_replay_lsn() - '0/0')::text as wal,
  (select system_identifier::text from pg_control_system()) as system`;

/** The URL of the replica is that of another server. */
class NotAReplica extends Error {
  override readonly name = "NotAReplica";
}

/** A replica is too far behind. */
class ReplicaLags extends Error {
  override readonly name = "ReplicaLags";
  constructor() {
    super(`the replica is more than ${MAX_LAG_MS / 1000} s behind the primary`);
  }
}

/**
 * Opens a replica and compares it with its primary every second. What the primary had written when its position was read,
 * the replica has when it has replayed up to there. Unlike the time of the last replayed transaction, this needs no
 * synchronized clocks, and tells an idle primary from a replica that is cut off from it.
 */
export function openReplica(url: string, primaryUrl: string): Replica {
  const database = openDatabase(url, { timeoutMs: TIMEOUT_MS });
  // A connection of its own: when all others are in use, the replica must not be left out on top of that.
  const primary = openDatabase(primaryUrl, { timeoutMs: MAX_LAG_MS, connections: 1 });
  const listeners = new Set<(state: ReplicaState) => void>();
  const stop = new AbortController();
  const reads = { replica: 0, primary: 0 };
  let positions: Position[] = [];
  let currentAt = Number.NEGATIVE_INFINITY;
  let primarySystem: string | undefined;
  let primaryProblem: Error | undefined;
  let problem: Error | undefined = new Error("the replica has not been checked yet");
  let wasInUse = false;

  function state(): ReplicaState {
    const lagMs = performance.now() - currentAt;
    const reason = problem ?? (lagMs > MAX_LAG_MS ? (primaryProblem ?? new ReplicaLags()) : undefined);
    return { isInUse: reason === undefined, lagMs, ...(reason && { problem: reason }) };
  }

  function report() {
    const now = state();
    if (now.isInUse === wasInUse || stop.signal.aborted) return;
    wasInUse = now.isInUse;
    for (const listener of listeners) listener(now);
  }

  /** Notes the position of the primary. Without it, the replica may seem to lag, which leaves it out in time. */
  async function askPrimary() {
    const takenAt = performance.now();
    const { rows } = await primary.knex.raw(PRIMARY);
    const [{ wal, system }] = rows;
    primarySystem = system;
    positions = [...positions, { takenAt, wal: BigInt(wal) }].slice(-MAX_POSITIONS);
  }

  async function askReplica() {
    const { rows } = await database.knex.raw(REPLICA);
    const [{ isReplica, wal, system }] = rows;
    if (!isReplica) throw new NotAReplica("the server is not a replica");
    if (primarySystem !== undefined && system !== primarySystem)
      throw new NotAReplica("the server is a replica of another primary");
    const reached = positions.findLastIndex((position) => position.wal <= BigInt(wal));
    currentAt = positions[reached]?.takenAt ?? currentAt;
    positions = positions.slice(Math.max(reached, 0));
  }

  async function checkRepeatedly() {
    while (!stop.signal.aborted) {
      primaryProblem = await failureOf(askPrimary());
      problem = await failureOf(askReplica());
      report();
      await sleep(CHECK_MS, undefined, { ref: false, signal: stop.signal }).catch(() => {});
    }
  }

  const checking = checkRepeatedly();
  return {
    database,
    state,
    reads: () => ({ ...reads }),
    onChange: (listener) => void listeners.add(listener),

    prefer: (fromReplica, fromPrimary) => async (key) => {
      if (state().isInUse) {
        try {
          const found = await fromReplica(key);
          if (found !== undefined) {
            reads.replica++;
            return found;
          }
        } catch (error) {
          problem = error as Error;
          report();
        }
      }
      reads.primary++;
      return fromPrimary(key);
    },

    async close() {
      stop.abort();
      await Promise.all([database.close(), primary.close()]);
      await checking;
    },
  };
}

/** Resolves to the error of a promise; undefined if it has none. */
function failureOf(promise: Promise<void>): Promise<Error | undefined> {
  return promise.then(
    () => undefined,
    (error) => error,
  );
}
