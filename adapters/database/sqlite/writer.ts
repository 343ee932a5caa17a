import type Sqlite from "better-sqlite3";
import type { Checkpoints } from "./checkpoints.ts";
import { rollBack } from "./connection.ts";
import { type Disk, SYNCS } from "./disk.ts";
import { prepared } from "./statements.ts";

/**
 * The single writes of a SQLite file. Those that come while the disk is busy with the ones before are one transaction,
 * and each is answered when the disk has it. The commit itself does not wait for the disk: it is followed by a sync of
 * the log on another thread, which is what a commit with `synchronous=FULL` does on this one.
 */
export type Writer = {
  /** Runs one statement; resolves to the number of rows changed. Rejects alone: a bad one does not fail its neighbours. */
  write(sql: string, bindings: unknown[]): Promise<number>;
  /** As `write`, for several that all happen or none; resolves to the rows that the first one changed. */
  writeTogether(statements: Statement[]): Promise<number>;
  /** Holds the next commits back until `release`: another connection may write. */
  pause(): Promise<{ release(): void }>;
  /** Commits what is waiting. */
  close(): Promise<void>;
};

type Statement = { sql: string; bindings: unknown[] };

type Waiting = {
  statements: Statement[];
  resolve(changes: number): void;
  reject(error: unknown): void;
};

// How long a commit waits for another process to let go of the file, and how often it looks.
const LOCK_WAIT_MS = 5000;
const LOCK_POLL_MS = 2;

// Commits that follow one another so closely are under load.
const BUSY_MS = 2;
const GATHER_TURNS = 3;
// While the disk is busy with one group another may follow, once it is worth a commit of its own: else all callers would
// wait for the same sync, and then all for the processor.
const WORTH_A_SYNC = 8;

/** The code of a write that the disk did not take. */
const DISK_FAILED = "SQLITE_IOERR_FSYNC";

/** Makes the writer of a connection that is used for reads as well, so that its cache stays warm. */
export function createWriter(connection: Sqlite.Database, disk: Disk, checkpoints: Checkpoints): Writer {
  const begin = connection.prepare("BEGIN IMMEDIATE");
  const commit = connection.prepare("COMMIT");
  const mark = connection.prepare("SAVEPOINT several");
  const keep = connection.prepare("RELEASE several");
  let waiting: Waiting[] = [];
  let scheduled = false;
  let syncs = 0;
  let lastSync = Promise.resolve();
  let tail = Promise.resolve();
  let holds = 0;
  let lockedSince: number | undefined;
  let lastFlush = 0;
  let broken: Error | undefined;

  function schedule() {
    if (scheduled || holds > 0 || waiting.length === 0) return;
    if (syncs > 0 && (syncs >= SYNCS || waiting.length < WORTH_A_SYNC)) return;
    scheduled = true;
    // At the end of this turn of the event loop, or a few turns later under load, which last longer the more there is
    // to do: a group costs hardly more than a single write.
    setImmediate(performance.now() - lastFlush > BUSY_MS ? flushScheduled : gather, GATHER_TURNS);
  }

  function gather(turns: number) {
    if (turns <= 1) flushScheduled();
    else setImmediate(gather, turns - 1);
  }

  function flushScheduled() {
    scheduled = false;
    if (holds > 0) return;
    lastFlush = performance.now();
    flush();
  }

  function flush() {
    const batch = waiting;
    waiting = [];
    try {
      if (!hasLock()) {
        waiting = batch;
        return;
      }
      const outcomes = batch.map(runWrite);
      // Some failures (a full disk) take the whole transaction with them.
      if (!connection.inTransaction) throw outcomes.find((outcome) => typeof outcome !== "number");
      commit.run();
      answerWhenSafe(batch, outcomes);
    } catch (error) {
      rollBack(connection);
      for (const { reject } of batch) reject(error);
    }
  }

  /** Takes the right to write; while another process has it, asks again a little later, for some seconds. */
  function hasLock(): boolean {
    try {
      begin.run();
      lockedSince = undefined;
      return true;
    } catch (error) {
      lockedSince ??= performance.now();
      const isLocked = (error as { code?: string }).code === "SQLITE_BUSY";
      if (!isLocked || performance.now() > lockedSince + LOCK_WAIT_MS) throw error;
      setTimeout(schedule, LOCK_POLL_MS);
      return false;
    }
  }

  function runWrite({ statements }: Waiting): unknown {
    try {
      return statements.length === 1 ? run(statements[0] as Statement) : runTogether(statements);
    } catch (error) {
      return error;
    }
  }

  function run({ sql, bindings }: Statement): number {
    return prepared(connection, sql).run(bindings).changes;
  }

  function runTogether(statements: Statement[]): number {
    mark.run();
    try {
      const [first] = statements.map(run);
      keep.run();
      return first as number;
    } catch (error) {
      if (connection.inTransaction) connection.exec("ROLLBACK TO several; RELEASE several");
      throw error;
    }
  }

  function submit(statements: Statement[]): Promise<number> {
    return new Promise((resolve, reject) => {
      if (broken) return reject(broken);
      waiting.push({ statements, resolve, reject });
      schedule();
    });
  }

  function answerWhenSafe(batch: Waiting[], outcomes: unknown[]) {
    syncs++;
    // The log is read in order: what follows a group that is lost is lost as well.
    lastSync = Promise.all([disk.sync(), lastSync]).then(() => {});
    lastSync
      .then(
        () => batch.forEach((write, index) => void settle(write, outcomes[index])),
        (error) => giveUp(batch, error),
      )
      .finally(() => {
        syncs--;
        schedule();
      });
    checkpoints.note(batch.length);
  }

  /**
   * The disk refused a sync. What the log still lacks may be gone from the system's memory as well, so that no later
   * sync can be believed: nothing is written any more until the service starts again and recovers the log.
   */
  function giveUp(batch: Waiting[], error: Error) {
    broken = Object.assign(new Error(`the disk failed: ${error.message}`), { code: DISK_FAILED });
    for (const { reject } of [...batch, ...waiting]) reject(broken);
    waiting = [];
  }

  return {
    write: (sql, bindings) => submit([{ sql, bindings }]),

    writeTogether: submit,

    async pause() {
      holds++;
      const before = tail;
      const { promise, resolve } = Promise.withResolvers<void>();
      tail = tail.then(() => promise);
      await before;
      return {
        release() {
          holds--;
          resolve();
          schedule();
        },
      };
    },

    async close() {
      await tail;
      while (waiting.length > 0 || syncs > 0 || scheduled)
        await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
    },
  };
}

function settle({ resolve, reject }: Waiting, outcome: unknown): void {
  if (typeof outcome === "number") resolve(outcome);
  else reject(outcome);
}
