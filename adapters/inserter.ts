import type { Knex } from "knex";
import type { Engine } from "./engine.ts";
import type { Prepare } from "./statement.ts";
import { persistently, StorageUnavailable } from "./unavailable.ts";

type Row = Record<string, string | number | boolean | null>;
type Waiting = { row: Row; resolve(): void; reject(error: unknown): void };

/** Inserts a row, and resolves when it is committed. Rejects alone: a bad row does not fail its neighbours. */
export type Insert = (row: Row) => Promise<void>;

// Under the 65,535 parameters of a PostgreSQL statement with any of our tables.
const MAX_ROWS = 500;

type InserterOptions = { knex: Knex; engine: Engine; prepare: Prepare; table: string; columns: string[] };

/**
 * Makes the insertion into a table of many small rows. SQLite's writer commits in groups by itself; over a network,
 * the rows of one turn of the event loop go in one statement, which saves their round trips.
 */
export function createInserter({ knex, engine, prepare, table, columns }: InserterOptions): Insert {
  if (engine === "sqlite") {
    const insert = prepare<unknown>((q, parameters) =>
      q(table).insert(Object.fromEntries(columns.map((column) => [column, parameters[column]]))),
    );
    return async (row) => void (await insert(row));
  }

  const waiting: Waiting[] = [];

  async function flush() {
    const batch = waiting.splice(0, MAX_ROWS);
    if (waiting.length > 0) setImmediate(flush);
    try {
      await persistently(async () => void (await knex(table).insert(batch.map(({ row }) => row))), false);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // A cut connection leaves open whether the rows are there; anything else is one bad row, and it is found singly.
      if (batch.length === 1 || error instanceof StorageUnavailable) {
        for (const { reject } of batch) reject(error);
      } else await Promise.all(batch.map(insertAlone));
    }
  }

  async function insertAlone({ row, resolve, reject }: Waiting) {
    try {
      await persistently(async () => void (await knex(table).insert(row)), false);
      resolve();
    } catch (error) {
      reject(error);
    }
  }

  return (row) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ row, resolve, reject });
    });
}
