import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import type { Build, createPrepare } from "./statement.ts";
import { persistently, StorageUnavailable } from "./unavailable.ts";

export type Row = Record<string, string | number | boolean | null>;
type Waiting = { rows: Row[]; resolve(): void; reject(error: unknown): void };

/**
 * Inserts one row into each of the tables, all of them or none, and resolves when they are committed. Rejects alone: a bad
 * row does not fail its neighbours.
 */
export type Insert = (...rows: Row[]) => Promise<void>;

/** What is inserted together. */
export type Insertion = {
  tables: { name: string; columns: string[] }[];
  /** A statement that follows in the same transaction, about the rows of the last table with these ids. */
  follow?: (knex: Knex, ids: unknown[]) => Knex.Raw;
};

// Under the 65,535 parameters of a PostgreSQL statement with any of our tables.
const MAX_ROWS = 500;

type InserterOptions = ReturnType<typeof createPrepare> & { knex: Knex; engine: Engine };

/**
 * Makes the insertion of many small rows. SQLite's writer commits in groups by itself; over a network, the rows of one
 * turn of the event loop go in one statement for each table, which saves their round trips.
 */
export function createInserter({ knex, engine, ...prepared }: InserterOptions, insertion: Insertion): Insert {
  return engine === "sqlite" ? preparedInserter(prepared, insertion) : gatheringInserter(knex, insertion);
}

function preparedInserter(
  { prepare, prepareTogether }: ReturnType<typeof createPrepare>,
  { tables, follow }: Insertion,
): Insert {
  const builds: Build[] = tables.map(
    ({ name, columns }) =>
      (q, parameters) =>
        q(name).insert(Object.fromEntries(columns.map((column) => [column, parameters[column]]))),
  );
  if (follow) builds.push((q, { id }) => follow(q, [id]));
  if (builds.length === 1) {
    const insert = prepare<unknown>(builds[0] as Build);
    return async (row) => void (await insert(row as Row));
  }
  const insertTogether = prepareTogether(builds);
  return (...rows) => insertTogether(follow ? [...rows, rows.at(-1) as Row] : rows);
}

function gatheringInserter(knex: Knex, { tables, follow }: Insertion): Insert {
  const waiting: Waiting[] = [];

  /** One statement where one will do; a transaction otherwise. */
  async function store(batch: Waiting[]) {
    const run = async (trx: Knex) => {
      for (const [index, { name }] of tables.entries()) {
        await trx(name).insert(batch.map(({ rows }) => rows[index]));
      }
      if (follow)
        await follow(
          trx,
          batch.map(({ rows }) => rows.at(-1)?.id),
        );
    };
    await persistently(() => (tables.length === 1 && !follow ? run(knex) : knex.transaction(run)), false);
  }

  async function flush() {
    const batch = waiting.splice(0, MAX_ROWS);
    if (waiting.length > 0) setImmediate(flush);
    try {
      await store(batch);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A cut connection leaves open whether the rows are there; anything else is one bad row, and it is found singly.
      if (batch.length === 1 || error instanceof StorageUnavailable) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(storeAlone));
    }
  }

  async function storeAlone(one: Waiting) {
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
