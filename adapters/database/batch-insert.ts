import type { Knex } from "knex";
import { type Engine, isCheckViolation } from "./engine.ts";
import type { Insertion } from "./insertion.ts";
import type { Build, createPrepare, GroupedWrite } from "./prepared-statements.ts";
import { prepareRecordInsert, type StoreBatch } from "./record-insert.ts";
import { StorageUnavailable, withRetries } from "./retry.ts";
import type { Row } from "./sqlite/group-state.ts";

type Waiting = { rows: Row[]; resolve(): void; reject(error: unknown): void };

/**
 * Inserts one row into each of the tables, all or none, and resolves when they are committed. An invalid row does not
 * fail the other rows of its batch.
 */
export type Insert = (...rows: Row[]) => Promise<void>;

// Stays below PostgreSQL's limit of 65,535 parameters per statement for every table.
const MAX_ROWS = 500;

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
  return createGroupedInsert(store, insertion);
}

function createPreparedInsert(
  { prepare, prepareTogether }: ReturnType<typeof createPrepare>,
  { tables, follow, counter }: Insertion,
): Insert {
  const writes: GroupedWrite[] = tables.map(({ name, columns, state }) => ({
    build: (q, parameters) =>
      q(name).insert(Object.fromEntries(columns.map((column) => [column, parameters[column]]))),
    state,
  }));
  if (follow) writes.push({ build: (q, { id }) => follow(q, [id]) });
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

function createGroupedInsert(storeBatch: StoreBatch, { uniqueColumn }: Insertion): Insert {
  const waiting: Waiting[] = [];
  let batches = 0;

  const store = (batch: Waiting[]) =>
    storeBatch(
      batch.map(({ rows }) => rows),
      batches++,
    );

  async function flush() {
    const batch = waiting.splice(0, MAX_ROWS);
    if (uniqueColumn) batch.sort(byColumn(uniqueColumn));
    if (waiting.length > 0) setImmediate(flush);
    try {
      await store(batch);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A lost connection leaves open whether the rows were stored, and a counter that is at its limit needs more than
      // another attempt. Any other error is caused by one of the rows, so they are retried one by one.
      if (batch.length === 1 || error instanceof StorageUnavailable || isCheckViolation(error)) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(storeSingle));
    }
  }

  async function storeSingle(one: Waiting) {
    try {
      await store([one]);
      one.resolve();
    } catch (error) {
      one.reject(error);
    }
  }

  return (...rows) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ rows, resolve, reject });
    });
}

/** Compares by a column of the first row, in the same order in every process. */
function byColumn(column: string): (one: Waiting, other: Waiting) => number {
  const keyOf = ({ rows }: Waiting) => Buffer.from(String(rows[0]?.[column]));
  return (one, other) => Buffer.compare(keyOf(one), keyOf(other));
}
