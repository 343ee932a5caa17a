import type Sqlite from "better-sqlite3";
import type { Checkpoints } from "./checkpoints.ts";
import { rollBack } from "./connection.ts";
import { createSyncs, type Disk, MAX_SYNCS } from "./disk.ts";
import { createGroupTransaction, type Statement } from "./group-transaction.ts";

/**
 * The single writes of a SQLite database, committed in groups. Writes that arrive while the disk is busy form one
 * transaction, and each resolves when it is on the disk. The commit itself does not wait for the disk: a sync of the log
 * on another thread follows it, which is what a commit with `synchronous=FULL` does on this thread.
 */
export type Writer = {
  /** Runs a statement and resolves to the number of changed rows. A failed write does not fail the others of its group. */
  write(sql: string, bindings: unknown[]): Promise<number>;
  /** Runs several statements, all or none. Resolves to the number of rows that the first one changed. */
  writeTogether(statements: Statement[]): Promise<number>;
  /** Postpones commits until `release`, so that another connection can write. */
  pause(): Promise<{ release(): void }>;
  /** Waits for pending writes. */
  close(): Promise<void>;
};

type Waiting = {
  statements: Statement[];
  resolve(changes: number): void;
  reject(error: unknown): void;
};

// How often to try again while another process holds the lock.
const LOCK_POLL_MS = 2;

// Commits this close together mean that the service is under load.
const BUSY_MS = 2;
const GATHER_TURNS = 3;
// While the disk is busy with one group, another group starts only if it has at least this many writes. Otherwise all
// callers would wait for the same sync, and then all compete for the processor.
const MIN_OVERLAPPING_WRITES = 8;

/** Creates the writer of a connection, which also serves reads, so its cache stays warm. */
export function createWriter(
  connection: Sqlite.Database,
  disk: Disk,
  checkpoints: Checkpoints,
  onStatement: (sql: string) => void,
): Writer {
  const transaction = createGroupTransaction(connection, onStatement);
  const pauses = createPauses(schedule);
  const syncs = createSyncs(disk);
  let waiting: Waiting[] = [];
  let isScheduled = false;
  let lastFlush = 0;
  let failure: Error | undefined;

  function schedule() {
    if (isScheduled || pauses.isPaused() || waiting.length === 0) return;
    if (syncs.pending() >= MAX_SYNCS) return;
    if (syncs.pending() > 0 && waiting.length < MIN_OVERLAPPING_WRITES) return;
    isScheduled = true;
    // At the end of this turn of the event loop, or a few turns later under load. Turns take longer the more work there
    // is, and a group costs little more than a single write.
    setImmediate(performance.now() - lastFlush > BUSY_MS ? flush : gather, GATHER_TURNS);
  }

  function gather(turns: number) {
    if (turns <= 1) flush();
    else setImmediate(gather, turns - 1);
  }

  function flush() {
    isScheduled = false;
    if (pauses.isPaused()) return;
    lastFlush = performance.now();
    const batch = waiting;
    waiting = [];
    try {
      const outcomes = transaction.run(batch.map(({ statements }) => statements));
      if (outcomes) resolveWhenDurable(batch, outcomes);
      else {
        waiting = batch;
        setTimeout(schedule, LOCK_POLL_MS);
      }
    } catch (error) {
      rollBack(connection);
      for (const { reject } of batch) reject(error);
    }
  }

  function resolveWhenDurable(batch: Waiting[], outcomes: unknown[]) {
    syncs
      .sync()
      .then(
        () => batch.forEach((write, index) => void settle(write, outcomes[index])),
        (error) => fail(batch, error),
      )
      .finally(schedule);
    checkpoints.recordWrites(batch.length);
  }

  /** Rejects all further writes after a failed sync. */
  function fail(batch: Waiting[], error: Error) {
    failure = toSyncFailure(error);
    for (const { reject } of [...batch, ...waiting]) reject(failure);
    waiting = [];
  }

  function submit(statements: Statement[]): Promise<number> {
    return new Promise((resolve, reject) => {
      if (failure) return reject(failure);
      waiting.push({ statements, resolve, reject });
      schedule();
    });
  }

  return {
    write: (sql, bindings) => submit([{ sql, bindings }]),
    writeTogether: submit,
    pause: pauses.pause,
    async close() {
      await pauses.ended();
      while (waiting.length > 0 || syncs.pending() > 0 || isScheduled)
        await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
    },
  };
}

/**
 * Returns the error of all writes after a failed sync. The system may have dropped the unwritten pages from its cache, so
 * a later sync that succeeds proves nothing. A restart recovers the log.
 */
function toSyncFailure(error: Error): Error {
  return Object.assign(new Error(`the disk failed: ${error.message}`), { code: "SQLITE_IOERR_FSYNC" });
}

/** Grants pauses one after the other. */
function createPauses(onRelease: () => void) {
  let count = 0;
  let last = Promise.resolve();
  return {
    isPaused: () => count > 0,
    /** Resolves when all pauses so far have ended. */
    ended: () => last,
    async pause() {
      count++;
      const previous = last;
      const { promise, resolve } = Promise.withResolvers<void>();
      last = last.then(() => promise);
      await previous;
      return {
        release() {
          count--;
          resolve();
          onRelease();
        },
      };
    },
  };
}

function settle({ resolve, reject }: Waiting, outcome: unknown): void {
  if (typeof outcome === "number") resolve(outcome);
  else reject(outcome);
}
