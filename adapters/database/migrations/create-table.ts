import type { Knex } from "knex";
import { type Engine, isAlreadyCreated, keyColumn } from "../engine.ts";

/** The length of an ID: a prefix and a ULID. */
export const ID = 40;
/** The length of a SHA-256 hash in base64url. */
export const HASH = 43;
/** The length of a client ID, which may be the URL of a client metadata document. */
export const CLIENT_ID = 255;
/** The length of a referrer or a webhook's host: a hostname. */
export const HOST = 253;
/** The length of an IPv6 address in its longest text form. */
export const ADDRESS = 45;

/** Adds a string column that every engine compares byte by byte. */
type Key = (name: string, length: number) => Knex.ColumnBuilder;

/** Creates a table and its indexes. Those that a process created before it died are skipped. */
export async function createTable(
  knex: Knex,
  engine: Engine,
  name: string,
  define: (table: Knex.CreateTableBuilder, key: Key) => void,
): Promise<void> {
  const statements = knex.schema.createTable(name, (table) =>
    define(table, (column, length) => keyColumn(table, column, length, engine)),
  );
  for (const { sql } of statements.toSQL()) await createOnce(knex, sql);
}

/** Executes a statement that creates something, unless it exists already. */
export async function createOnce(knex: Knex, statement: string): Promise<void> {
  try {
    await knex.raw(statement);
  } catch (error) {
    if (!isAlreadyCreated(error)) throw error;
  }
}
