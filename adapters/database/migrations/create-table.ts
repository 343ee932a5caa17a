import type { Knex } from "knex";
import { isAlreadyCreated } from "../engine.ts";

/** Creates a table and its indexes. Those that a process created before it died are skipped. */
export async function createTable(
  knex: Knex,
  name: string,
  define: (table: Knex.CreateTableBuilder) => void,
): Promise<void> {
  for (const { sql } of knex.schema.createTable(name, define).toSQL()) await createOnce(knex, sql);
}

/** Executes a statement that creates a table or an index, unless it exists already. */
export async function createOnce(knex: Knex, statement: string): Promise<void> {
  try {
    await knex.raw(statement);
  } catch (error) {
    if (!isAlreadyCreated(error)) throw error;
  }
}
