import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import { createGroupedWrite, type StoreBatch } from "./grouped-write.ts";
import { type Insertion, sumsOf } from "./insertion.ts";
import { toStorable } from "./postgres.ts";
import type { Build, createPrepare, Row } from "./prepared-statements.ts";
import { withRetries } from "./retry.ts";

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
  { tables, follow, counter }: Insertion,
): Insert {
  const last = tables.length - 1;
  const writes: Build[] = tables.map(
    ({ name, columns }) =>
      (q, parameters) =>
        q(name).insert(Object.fromEntries(columns.map((column) => [column, parameters[column]]))),
  );
  if (follow) {
    const rows = withId(tables[last]?.name, "= (select ?)");
    writes.push((q, { id }) => q.raw(follow(rows), [id as Knex.Raw]));
  }
  if (writes.length === 1 && !counter) {
    const insert = prepare<unknown, string>(writes[0] as Build);
    return async (row) => void (await insert(row as Row));
  }
  // First, because a write whose first statement fails needs no savepoint.
  if (counter) writes.unshift(counter.one);
  const insertTogether = prepareTogether(writes);
  return async (...rows) => {
    const values = follow ? rows.toSpliced(last + 1, 0, rows[last] as Row) : rows;
    await insertTogether(counter ? [values.at(-1) as Row, ...values.slice(0, -1)] : values);
  };
}

/** Inserts a batch in one statement if possible, or else in a transaction. */
function storeInTransaction(knex: Knex, { tables, follow, counter }: Insertion): StoreBatch {
  return async (batch) => {
    const run = async (trx: Knex) => {
      const rowsOf = (index: number) => batch.map((rows) => rows[index] as Row);
      for (const [index, { name }] of tables.entries()) await trx(name).insert(rowsOf(index));
      const ids = rowsOf(tables.length - 1).map(({ id }) => id as string);
      const places = ids.map(() => "?").join(", ");
      if (follow) await trx.raw(follow(withId(tables.at(-1)?.name, `in (${places})`)), ids);
      // Last, so that locks on counters are held briefly.
      if (counter) for (const sum of sumsOf(counter, batch)) await counter.one(trx, sum as never);
    };
    const isSingle = tables.length === 1 && !follow && !counter;
    await withRetries(() => (isSingle ? run(knex) : knex.transaction(run)), false);
  };
}

function withId(table: string | undefined, condition: string): string {
  return `(select * from ${table} where id ${condition})`;
}

/**
 * Prepares one PostgreSQL statement for batches of any size: the rows of each table are one JSON parameter, so a batch
 * takes one round trip and one plan.
 */
function prepareRecordInsert(
  { prepare }: ReturnType<typeof createPrepare>,
  { tables, follow, counter }: Insertion,
): StoreBatch {
  const insert = prepare<unknown, string>((q, parameters) => {
    const parts = tables.map(({ name, columns }, index) => {
      const list = columns.map((column) => `"${column}"`).join(", ");
      return `"new_${name}" as (insert into "${name}" (${list}) select ${list}
        from json_populate_recordset(null::"${name}", ?) where ${after(tables[index - 1]?.name)} returning *)`;
    });
    const last = tables.at(-1)?.name;
    const names = tables.map(({ name }) => name);
    if (follow) parts.push(`"followed" as (${follow(`"new_${last}"`)})`);
    // Last, so that locks on counters are held briefly.
    const end = counter ? counter.records("?", after(last)) : "select 1";
    if (counter) names.push("sums");
    return q.raw(`with ${parts.join(", ")} ${end}`, names.map((name) => parameters[name]) as never[]);
  });

  return async (batch) => {
    const records = (index: number) => JSON.stringify(batch.map((rows) => toRecord(rows[index] as Row)));
    const values = Object.fromEntries(tables.map(({ name }, index) => [name, records(index)]));
    await insert(counter ? { ...values, sums: JSON.stringify(sumsOf(counter, batch)) } : values);
  };
}

/**
 * Returns a condition that is always true, but makes PostgreSQL finish another part of the statement first. Without it,
 * the order of the parts is undefined, and statements that lock rows in different orders can deadlock.
 */
function after(name: string | undefined): string {
  return name ? `(select count(*) from "new_${name}") >= 0` : "true";
}

/** Returns a row that PostgreSQL accepts as JSON. Replaces what it can't store, as `PostgresClient` does for parameters. */
function toRecord(row: Row): Row {
  const replaced: Row = {};
  let isReplaced = false;
  for (const [column, value] of Object.entries(row)) {
    if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${column} is ${value}`);
    if (typeof value !== "string") continue;
    const storable = toStorable(value);
    if (storable === value) continue;
    replaced[column] = storable;
    isReplaced = true;
  }
  return isReplaced ? { ...row, ...replaced } : row;
}
