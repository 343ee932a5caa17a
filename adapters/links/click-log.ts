import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import type { Leases } from "../database/leases.ts";
import { BATCHES } from "./unfolded-clicks.ts";

/**
 * The clicks that are stored, but not counted in the rows of their links yet. In a large database, every clicked link is on
 * a page of its own, and to count a click is to write that page. So the clicks of many links are appended to a table, which
 * takes a few pages, and counted in the links seconds later, in the order of their rows and together with further clicks.
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

const FOLD_AFTER_MS = 5000;
// Links in one transaction: at worst each changes a page, which delays requests for some milliseconds.
const LINKS = 200;
const PAUSE_MS = 5;
const LEASE = "click-fold";
// How long a process that died while folding blocks the others.
const LEASE_MS = 30_000;

const APPEND = `insert into click_log (batch, link_id, clicks, clicked_at)
  select (select max(coalesce((select max(batch) from click_log), 0), coalesce((select max(batch) from click_fold), 0)) + 1),
    key, value, ? from json_each(?)`;

const BEGIN = `insert into click_fold (batch, link_id)
  select max(batch), '' from click_log where not exists (select 1 from click_fold) having max(batch) is not null`;

// Changes nothing unless the fold has come exactly as far as this process knows.
const IS_AT = "from click_fold where batch = ? and link_id = ?";
const FOLD = `update links set clicks = links.clicks + folded.clicks,
    last_clicked_at = max(coalesce(links.last_clicked_at, 0), folded.clicked_at)
  from (${BATCHES} select link_id, sum(clicks) as clicks, max(clicked_at) as clicked_at
    from batches cross join click_log using (batch)
    where batch <= ? and link_id > ? and link_id <= ? group by link_id) as folded
  where links.id = folded.link_id and exists (select 1 ${IS_AT})`;
const ADVANCE = "update click_fold set link_id = ? where batch = ? and link_id = ?";

// Only clicks that are counted in their links.
const REMOVE = `delete from click_log where batch = ?
  and link_id <= (select link_id from click_fold where click_fold.batch >= click_log.batch)`;
const END = `delete from click_fold where batch = ? and not exists (select 1 from click_log where batch <= ?)`;

type Progress = { batch: number; link_id: string };

/** Creates the click log of a process, for SQLite. */
export function createClickLog({ knex, prepareTogether }: Database, leases: Leases): ClickLog {
  const foldLinks = prepareTogether([
    { build: (q, { batch, after, last }) => q.raw(FOLD, [batch, after, last, batch, after] as Knex.Raw[]) },
    { build: (q, { batch, after, last }) => q.raw(ADVANCE, [last, batch, after] as Knex.Raw[]) },
  ]);
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isStopped = false;

  function schedule() {
    if (isStopped) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      // What it could not fold is folded with the clicks of the next moment, or the next purge.
      foldOnce().catch(() => {});
    }, FOLD_AFTER_MS).unref();
  }

  async function foldOnce(mayContinue: () => Promise<boolean> = async () => true): Promise<void> {
    await running;
    if (isStopped) return;
    running = foldUnderLease(async () => !isStopped && (await mayContinue())).finally(() => {
      running = undefined;
    });
    return running;
  }

  async function foldUnderLease(mayContinue: () => Promise<boolean>) {
    const [row] = await knex.raw("select 1 from click_log limit 1");
    if (!row || !(await mayContinue()) || !(await leases.acquire(LEASE, LEASE_MS))) return;
    try {
      await finish(mayContinue); // a fold that was interrupted, which doesn't include the clicks since then
      await knex.raw(BEGIN);
      await finish(mayContinue);
    } finally {
      await leases.release(LEASE);
    }
  }

  /** Folds the clicks of a fold that has begun, and removes them from the log. */
  async function finish(mayContinue: () => Promise<boolean>) {
    const [progress]: Progress[] = await knex.raw("select batch, link_id from click_fold");
    if (!progress || !(await foldFrom(progress, mayContinue))) return;
    await remove(progress.batch, mayContinue);
  }

  /** Folds the links after those that are folded, in the order of their rows. Returns whether it could finish. */
  async function foldFrom({ batch, link_id }: Progress, mayContinue: () => Promise<boolean>) {
    const ids = [...(await readLinkIds(batch, link_id))].sort();
    let after = link_id;
    for (let end = LINKS; end < ids.length + LINKS; end += LINKS) {
      if (!(await mayContinue())) return false;
      const last = ids[Math.min(end, ids.length) - 1] as string;
      const values = { batch, after, last };
      await foldLinks([values, values]);
      after = last;
      await sleep(PAUSE_MS);
    }
    return true;
  }

  async function readLinkIds(batch: number, after: string): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const each of await readBatches(batch)) {
      const rows = await knex("click_log")
        .where({ batch: each })
        .where("link_id", ">", after)
        .select("link_id");
      for (const { link_id } of rows) ids.add(link_id);
      await sleep(0);
    }
    return ids;
  }

  async function remove(batch: number, mayContinue: () => Promise<boolean>) {
    for (const each of await readBatches(batch)) {
      if (!(await mayContinue())) return;
      await knex.raw(REMOVE, [each]);
    }
    await knex.raw(END, [batch, batch]);
  }

  async function readBatches(last: number): Promise<number[]> {
    const rows: { batch: number }[] = await knex.raw(
      `${BATCHES} select batch from batches where batch <= ?`,
      [last],
    );
    return rows.map(({ batch }) => batch);
  }

  return {
    async append(counts, latest) {
      // In the order of the key, so they are appended.
      const sorted = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
      await knex.raw(APPEND, [latest, JSON.stringify(Object.fromEntries(sorted))]);
      schedule();
    },
    fold: foldOnce,
    drained: async () => {
      if (!timer && !running) return;
      clearTimeout(timer);
      await foldOnce().catch(() => {}); // the clicks stay in the log
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running?.catch(() => {});
    },
  };
}
