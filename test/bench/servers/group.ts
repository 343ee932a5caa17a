import type Sqlite from "better-sqlite3";

/** Commits the writes of one event-loop turn in one transaction, and answers each after it. */
export function createGroup(database: Sqlite.Database): (write: () => void) => Promise<void> {
  let waiting: { write(): void; done(): void; failed(error: unknown): void }[] = [];
  const begin = database.prepare("BEGIN");
  const commit = database.prepare("COMMIT");

  function flush() {
    const batch = waiting;
    waiting = [];
    begin.run();
    for (const entry of batch) {
      try {
        entry.write();
      } catch (error) {
        entry.failed(error);
      }
    }
    commit.run();
    for (const { done } of batch) done();
  }

  return (write) =>
    new Promise((done, failed) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ write, done, failed });
    });
}
