import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import { toStorable } from "./postgres.ts";
import type { createPrepare, Prepare, Row, Value } from "./prepared-statements.ts";
import { StorageUnavailable, withRetries } from "./retry.ts";

// With one, the database would idle while the next batch is prepared; each further one makes the batches smaller.
const CONCURRENCY = 2;
// A batch that takes longer waits for a lock, and must not hold up the others.
const STALLED_MS = 100;
// Stays below PostgreSQL's limit of 65,535 parameters per statement for every table.
const MAX_ITEMS = 500;

type Waiting<Item, Result> = { item: Item; resolve(result: Result): void; reject(error: unknown): void };

/** Batches the items of a turn, or of the wait for an earlier batch. `run` settles every item, and never rejects. */
function createBatches<Item, Result>(
  run: (batch: Waiting<Item, Result>[]) => Promise<void>,
): (item: Item) => Promise<Result> {
  const waiting: Waiting<Item, Result>[] = [];
  let running = 0;
  let isScheduled = false;

  function schedule() {
    if (isScheduled || running >= CONCURRENCY || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(start);
  }

  function start() {
    isScheduled = false;
    running++;
    let isCounted = true;
    const end = () => {
      if (isCounted) running--;
      isCounted = false;
      schedule();
    };
    const timer = setTimeout(end, STALLED_MS);
    void run(waiting.splice(0, MAX_ITEMS)).finally(() => {
      clearTimeout(timer);
      end();
    });
    schedule();
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      schedule();
    });
}

type StoreBatch = (batch: Row[][]) => Promise<void>;

/** Writes rows in batches, each sorted by a column of its first row. An invalid row doesn't affect the others. */
export function createGroupedWrite(store: StoreBatch, sortedBy?: string): (...rows: Row[]) => Promise<void> {
  const keyOf = ([row]: Row[]) => Buffer.from(String(row?.[sortedBy as string]));
  const add = createBatches<Row[], void>(async (batch) => {
    if (sortedBy) batch.sort((one, other) => Buffer.compare(keyOf(one.item), keyOf(other.item)));
    try {
      await store(batch.map(({ item }) => item));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A lost connection leaves open what was stored. Any other error is one row's, so all are retried one by one.
      if (batch.length === 1 || error instanceof StorageUnavailable) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(({ item, resolve, reject }) => store([item]).then(resolve, reject)));
    }
  });
  return (...rows) => add(rows);
}

export type LookupQuery<Row> = {
  /** Compares the key with `:key`. */
  sql: string;
  /** The column of the rows that has the key. */
  column: keyof Row & string;
  values?: () => Record<string, Value>;
};

// `select` hides the number of keys from the planner, which would plan anew for each. `offset` makes it use the
// index, as for one key: the tables of the moment may be empty.
const each = (sql: string) =>
  `select found.* from unnest((select :keys::text[])) as wanted(key),
    lateral (${sql.replaceAll(":key", "wanted.key")} offset 0) as found`;

/** Returns rows as current as the call. On PostgreSQL, concurrent calls share a statement. */
export function prepareLookup<Row>(
  { prepare, engine }: { prepare: Prepare; engine: Engine },
  { sql, column, values = () => ({}) }: LookupQuery<Row>,
): (key: string) => Promise<Row[]> {
  if (engine !== "postgres") {
    const find = prepare<Row[], string>(sql);
    return (key) => find({ ...values(), key });
  }

  const findAll = prepare<Row[], string>(each(sql));
  const add = createBatches<string, Row[]>(async (batch) => {
    try {
      const keys = [...new Set(batch.map(({ item }) => item))];
      const rows = Map.groupBy(await findAll({ ...values(), keys }), (row) => row[column]);
      for (const { item, resolve } of batch) resolve(rows.get(item as Row[keyof Row & string]) ?? []);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  });
  return (key) => add(toStorable(key));
}

export type Insertion = {
  tables: { name: string; columns: string[] }[];
  /** The first table's unique column, in whose order batches are inserted: others would end in deadlocks. */
  uniqueColumn?: string;
  /** Counts writes against a limit. A write has one more row for it, after those of the tables. */
  counter?: Counter;
  /** Returns the SQL of a statement that follows, for the rows of the last table in a table or query. */
  follow?: (rows: string) => string;
};

/** A count above the limit becomes null, which its column refuses, so the write fails as a whole. */
export type Counter = {
  key: string;
  /** The SQL that counts one row. */
  one: string;
  sum(rows: Row[]): Row;
  /** Returns the SQL that counts all sums of a query on PostgreSQL, if a condition is true. */
  records(sums: string, condition: string): string;
};

/** Returns what the writes of each key count, in the same order in every process. */
export function sumsOf({ key, sum }: Counter, batch: Row[][]): Row[] {
  const groups = Map.groupBy(batch, (rows) => String(rows.at(-1)?.[key]));
  const keys = [...groups.keys()].sort();
  return keys.map((key) => sum((groups.get(key) as Row[][]).map((rows) => rows.at(-1) as Row)));
}

/** All or none of the rows, resolved when committed. An invalid row doesn't fail the others of its batch. */
export type Insert = (...rows: Row[]) => Promise<void>;

/** The writes of one turn share a statement per table, and on PostgreSQL one in total, which saves round trips. */
export function createBatchInsert(
  { knex, engine, ...prepared }: ReturnType<typeof createPrepare> & { knex: Knex; engine: Engine },
  insertion: Insertion,
): Insert {
  if (engine === "sqlite") return createPreparedInsert(prepared, insertion);
  const store =
    engine === "postgres" ? prepareRecordInsert(prepared, insertion) : storeInTransaction(knex, insertion);
  return createGroupedWrite(store, insertion.uniqueColumn);
}

function createPreparedInsert(
  { prepareTogether }: ReturnType<typeof createPrepare>,
  { tables, follow, counter }: Insertion,
): Insert {
  const last = tables.length - 1;
  const writes = tables.map(
    ({ name, columns }) =>
      `insert into "${name}" (${columns.join(", ")}) values (${columns.map((column) => `:${column}`).join(", ")})`,
  );
  if (follow) writes.push(follow(withId(tables[last]?.name, "= :id")));
  // First, because it is what fails if there is no room.
  if (counter) writes.unshift(counter.one);
  const insertTogether = prepareTogether(writes);
  return async (...rows) => {
    const values = follow ? rows.toSpliced(last + 1, 0, rows[last] as Row) : rows;
    await insertTogether(counter ? [values.at(-1) as Row, ...values.slice(0, -1)] : values);
  };
}

function storeInTransaction(knex: Knex, { tables, follow, counter }: Insertion): StoreBatch {
  return async (batch) => {
    const run = async (trx: Knex) => {
      const rowsOf = (index: number) => batch.map((rows) => rows[index] as Row);
      for (const [index, { name }] of tables.entries()) await trx(name).insert(rowsOf(index));
      const ids = rowsOf(tables.length - 1).map(({ id }) => id as string);
      const places = ids.map(() => "?").join(", ");
      if (follow) await trx.raw(follow(withId(tables.at(-1)?.name, `in (${places})`)), ids);
      // Last, so that locks on counters are held briefly.
      if (counter) for (const sum of sumsOf(counter, batch)) await trx.raw(counter.one, sum);
    };
    const isSingle = tables.length === 1 && !follow && !counter;
    await withRetries(() => (isSingle ? run(knex) : knex.transaction(run)), false);
  };
}

function withId(table: string | undefined, condition: string): string {
  return `(select * from ${table} where id ${condition})`;
}

function prepareRecordInsert(
  { prepare }: ReturnType<typeof createPrepare>,
  { tables, follow, counter }: Insertion,
): StoreBatch {
  const parts = tables.map(({ name, columns }, index) => {
    const list = columns.join(", ");
    return `new_${name} as (insert into "${name}" (${list}) select ${list}
      from json_populate_recordset(null::${name}, :${name}) where ${after(tables[index - 1]?.name)} returning *)`;
  });
  const last = tables.at(-1)?.name;
  if (follow) parts.push(`followed as (${follow(`new_${last}`)})`);
  const end = counter ? counter.records(":sums", after(last)) : "select 1";
  const insert = prepare<unknown, string>(`with ${parts.join(", ")} ${end}`);

  return async (batch) => {
    const records = (index: number) =>
      JSON.stringify(
        batch.map((rows) => rows[index]),
        storable,
      );
    const values = Object.fromEntries(tables.map(({ name }, index) => [name, records(index)]));
    await insert(counter ? { ...values, sums: JSON.stringify(sumsOf(counter, batch)) } : values);
  };
}

/** Always true, but orders the parts of a PostgreSQL statement: in any order, their locks can deadlock. */
function after(name: string | undefined): string {
  return name ? `(select count(*) from new_${name}) >= 0` : "true";
}

/** Replaces what PostgreSQL can't store as JSON, as `PostgresClient` does for parameters. */
function storable(column: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${column} is ${value}`);
  return typeof value === "string" ? toStorable(value) : value;
}
