import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import { BATCHES } from "./unfolded-clicks.ts";

/** Whether to continue, asked before each transaction. */
type MayContinue = () => Promise<boolean>;

/** Moves logged clicks, in small transactions. Each click is in the log or in its link at any time, wherever a process is killed. */
export type ClickFold = {
  /** Adds the clicks so far to their links. */
  fold(mayContinue: MayContinue): Promise<void>;
  /** Merges the batches of the log into its first one, unless a fold has begun. */
  merge(mayContinue: MayContinue): Promise<void>;
};

// Links in one transaction: at worst each changes a page, which delays requests for some milliseconds.
const LINKS = 200;
const PAUSE_MS = 5;

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

// Both change nothing once a fold has begun, which counts the clicks of a batch by the order of their links.
const IS_MERGED =
  "batch > ? and batch <= ? and link_id > ? and link_id <= ? and not exists (select 1 from click_fold)";
const ADD = `${BATCHES} insert into click_log (batch, link_id, clicks, clicked_at)
  select ?, link_id, sum(clicks), max(clicked_at) from batches cross join click_log using (batch)
  where ${IS_MERGED} group by link_id
  on conflict (batch, link_id) do update
    set clicks = click_log.clicks + excluded.clicks, clicked_at = max(click_log.clicked_at, excluded.clicked_at)`;
const TAKE = `${BATCHES} delete from click_log where batch in (select batch from batches) and ${IS_MERGED}`;

type Progress = { batch: number; link_id: string };

/** Creates the fold of a database. One process at a time should run it, which saves work; concurrent ones are correct. */
export function createClickFold({ knex, prepareTogether }: Database): ClickFold {
  const foldLinks = prepareTogether([
    { build: (q, { batch, after, last }) => q.raw(FOLD, [batch, after, last, batch, after] as Knex.Raw[]) },
    { build: (q, { batch, after, last }) => q.raw(ADVANCE, [last, batch, after] as Knex.Raw[]) },
  ]);
  const mergeLinks = prepareTogether([
    {
      build: (q, { into, batch, after, last }) => q.raw(ADD, [into, into, batch, after, last] as Knex.Raw[]),
    },
    {
      build: (q, { into, batch, after, last }) => q.raw(TAKE, [into, batch, after, last] as Knex.Raw[]),
    },
  ]);

  /** Folds the clicks of a fold that has begun, and removes them from the log. */
  async function finish(mayContinue: MayContinue) {
    const [progress]: Progress[] = await knex.raw("select batch, link_id from click_fold");
    if (!progress) return;
    const { batch, link_id: start } = progress;
    const batches = await readBatches(batch);
    const isDone = await eachRange(batches, start, mayContinue, async (after, last) => {
      const values = { batch, after, last };
      await foldLinks([values, values]);
    });
    if (isDone) await remove(batch, batches, mayContinue);
  }

  async function remove(batch: number, batches: number[], mayContinue: MayContinue) {
    for (const each of batches) {
      if (!(await mayContinue())) return;
      await knex.raw(REMOVE, [each]);
    }
    await knex.raw(END, [batch, batch]);
  }

  /** Runs `work` for ranges of the links in the batches, in their order. Returns whether it could finish. */
  async function eachRange(
    batches: number[],
    start: string,
    mayContinue: MayContinue,
    work: (after: string, last: string) => Promise<void>,
  ): Promise<boolean> {
    const ids = [...(await readLinkIds(batches, start))].sort();
    let after = start;
    for (let end = LINKS; end < ids.length + LINKS; end += LINKS) {
      if (!(await mayContinue())) return false;
      const last = ids[Math.min(end, ids.length) - 1] as string;
      await work(after, last);
      after = last;
      await sleep(PAUSE_MS);
    }
    return true;
  }

  async function readLinkIds(batches: number[], after: string): Promise<Set<string>> {
    const ids = new Set<string>();
    for (const batch of batches) {
      const rows = await knex("click_log").where({ batch }).where("link_id", ">", after).select("link_id");
      for (const { link_id } of rows) ids.add(link_id);
      await sleep(0);
    }
    return ids;
  }

  async function readBatches(last = Number.MAX_SAFE_INTEGER): Promise<number[]> {
    const rows: { batch: number }[] = await knex.raw(
      `${BATCHES} select batch from batches where batch <= ?`,
      [last],
    );
    return rows.map(({ batch }) => batch);
  }

  return {
    async fold(mayContinue) {
      await finish(mayContinue); // a fold that was interrupted, which doesn't include the clicks since then
      await knex.raw(BEGIN);
      await finish(mayContinue);
    },

    async merge(mayContinue) {
      const [into, ...others] = await readBatches();
      const batch = others.at(-1);
      if (into === undefined || batch === undefined) return;
      await eachRange(others, "", mayContinue, async (after, last) => {
        const values = { into, batch, after, last };
        await mergeLinks([values, values]);
      });
    },
  };
}
