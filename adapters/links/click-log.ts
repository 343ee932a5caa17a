import type { Database } from "../database/index.ts";
import type { Leases } from "../database/leases.ts";
import { createClickFold } from "./click-fold.ts";

/**
 * The clicks that are stored, but not counted in the rows of their links yet. In a large database, every clicked link is on
 * a page of its own, and to count a click is to write that page. So the clicks of many links are appended to a table, which
 * takes a few pages, and the next purge counts them in the links, in the order of their rows and together with all further
 * clicks. Until then, batches are merged every few seconds, because each read of a link looks into all of them.
 */
export type ClickLog = {
  /** Appends the clicks of a flush, all or none. */
  append(counts: Map<string, number>, latest: number): Promise<void>;
  /** Counts the clicks so far in their links, in small batches, unless another process is doing that. */
  fold(mayContinue: () => Promise<boolean>): Promise<void>;
  /** Folds what this process has appended, until `stop`. */
  drained(): Promise<void>;
  /** Waits for the current batch. Nothing is folded after it. */
  stop(): Promise<void>;
};

const MERGE_AFTER_MS = 5000;
const LEASE = "click-fold";
// How long a process that died while folding blocks the others.
const LEASE_MS = 30_000;

const APPEND = `insert into click_log (batch, link_id, clicks, clicked_at)
  select (select max(coalesce((select max(batch) from click_log), 0), coalesce((select max(batch) from click_fold), 0)) + 1),
    key, value, ? from json_each(?)`;

/** Creates the click log of a process, for SQLite. */
export function createClickLog(database: Database, leases: Leases): ClickLog {
  const { knex } = database;
  const clickFold = createClickFold(database);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let hasAppended = false;
  let isStopped = false;

  function schedule() {
    if (isStopped) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      // What could not be merged is merged with the clicks of the next moment, or folded.
      run("merge").catch(() => {});
    }, MERGE_AFTER_MS).unref();
  }

  async function run(
    step: "merge" | "fold",
    mayContinue: () => Promise<boolean> = async () => true,
  ): Promise<void> {
    await running;
    if (isStopped) return;
    if (step === "fold") hasAppended = false;
    running = runUnderLease(step, async () => !isStopped && (await mayContinue())).finally(() => {
      running = undefined;
    });
    return running;
  }

  async function runUnderLease(step: "merge" | "fold", mayContinue: () => Promise<boolean>) {
    const [row] = await knex.raw("select 1 from click_log limit 1");
    if (!row || !(await mayContinue()) || !(await leases.acquire(LEASE, LEASE_MS))) return;
    try {
      await clickFold[step](mayContinue);
    } finally {
      await leases.release(LEASE);
    }
  }

  return {
    async append(counts, latest) {
      // In the order of the key, so they are appended.
      const sorted = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
      hasAppended = true;
      await knex.raw(APPEND, [latest, JSON.stringify(Object.fromEntries(sorted))]);
      schedule();
    },
    fold: (mayContinue) => run("fold", mayContinue),
    drained: async () => {
      clearTimeout(timer);
      if (hasAppended || running) await run("fold").catch(() => {}); // the clicks stay in the log
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running?.catch(() => {});
    },
  };
}
