import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { isAlreadyCreated } from "../errors.ts";
import { creationOf, type Table } from "../tables/columns.ts";

/** Each statement may commit, so a migration completes what a dead process began. Released ones never change. */
export type Migration = {
  name: string;
  /** A sentence for operators, who read it before an upgrade. */
  changes: string;
  /** The tables whose rows it changes, indexes or copies, which takes long if there are many, and writes to them wait. */
  rewrites(engine: Engine): string[];
  /**
   * The last migration of the oldest version that works on the resulting schema; null if none does. For one that only
   * adds tables, indexes, and columns that may be omitted, the last migration of any earlier version.
   */
  oldestCompatible: string | null;
  up(knex: Knex, engine: Engine): Promise<void>;
};

/** Returns a migration that creates tables, and then what their declarations can't say. */
export function creates(
  name: string,
  changes: string,
  tables: readonly Table[],
  finish?: Migration["up"],
): Migration {
  return {
    name,
    changes,
    rewrites: () => [],
    oldestCompatible: null,
    async up(knex, engine) {
      await createTables(knex, engine, tables);
      await finish?.(knex, engine);
    },
  };
}

export async function createTables(knex: Knex, engine: Engine, tables: readonly Table[]): Promise<void> {
  for (const table of tables)
    for (const statement of creationOf(knex, engine, table)) await createOnce(knex, statement);
}

/** Runs a statement that creates something, unless a process that died has created it. */
export async function createOnce(knex: Knex, statement: string): Promise<void> {
  try {
    await knex.raw(statement);
  } catch (error) {
    if (!isAlreadyCreated(error)) throw error;
  }
}
