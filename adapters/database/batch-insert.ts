import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import { createGroupedWrite, type StoreBatch } from "./grouped-write.ts";
import type { Insertion } from "./insertion.ts";
import type { Build, createPrepare, GroupedWrite } from "./prepared-statements.ts";
import { prepareRecordInsert } from "./record-insert.ts";
import { withRetries } from "./retry.ts";
import type { Row } from "./sqlite/group-state.ts";

/**
 * Inserts one row into each of the tables, all or none, and resolves when they are committed. An invalid row does not
 * fail the other rows of its batch.
 */
export type Insert = (...rows: Row[]) => Promise<void>;

type BatchInsertOptions = ReturnType<typeof createPrepare> & { knex: Knex; engine: Engine };

/**
 * Creates a function that inserts small rows in batches. SQLite's writer already commits in groups. Over a network, the
 * rows of one turn of the event loop share one statement per table, and on PostgreSQL one in total, which saves round trips.
 */
export function createBatchInsert(
  { knex, engine, ...prepared }: BatchInsertOptions,
  insertion: Insertion,
): Insert {
  if (engine === "sqlite") return createPreparedInsert(prepared, insertion);
  const store =
    engine === "postgres" ? prepareRecordInsert(prepared, insertion) : storeInTransaction(knex, insertion);
  return createGroupedWrite(store, insertion.uniqueColumn);
}

function createPreparedInsert(
  { prepare, prepareTogether }: ReturnType<typeof createPrepare>,
  { tables, follow, followState, counter }: Insertion,
): Insert {
  const writes: GroupedWrite[] = tables.map(({ name, columns, state }) => ({
    build: (q, parameters) =>
      q(name).insert(Object.fromEntries(columns.map((column) => [column, parameters[column]]))),
    state,
  }));
  if (follow) writes.push({ build: (q, { id }) => follow(q, [id]), state: followState });
  if (writes.length === 1) {
    const insert = prepare<unknown, string>(writes[0]?.build as Build);
    return async (row) => void (await insert(row as Row));
  }
  if (counter) writes.push({ build: counter.one, state: counter.state });
  const insertTogether = prepareTogether(writes);
  return (...rows) => {
    const followed = follow ? [rows[tables.length - 1] as Row] : [];
    return insertTogether([...rows.slice(0, tables.length), ...followed, ...rows.slice(tables.length)]);
  };
}

/** Inserts a batch in one statement if possible, or else in a transaction. */
function storeInTransaction(knex: Knex, { tables, follow, counter }: Insertion): StoreBatch {
  return async (batch, number) => {
    const run = async (trx: Knex) => {
      const rowsOf = (index: number) => batch.map((rows) => rows[index] as Row);
      for (const [index, { name }] of tables.entries()) await trx(name).insert(rowsOf(index));
      const ids = rowsOf(tables.length - 1).map(({ id }) => id);
      if (follow) await follow(trx, ids);
      if (counter) await counter.many(trx, rowsOf(tables.length), number);
    };
    await withRetries(
      () => (tables.length === 1 && !follow && !counter ? run(knex) : knex.transaction(run)),
      false,
    );
  };
}
