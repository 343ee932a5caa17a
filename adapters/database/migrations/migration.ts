import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { isAlreadyCreated } from "../errors.ts";

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

export const ID = 40;
export const HASH = 43;
/** The length of a client ID, which may be the URL of a client metadata document. */
export const CLIENT_ID = 255;
/** The length of a referrer or a webhook's host: a hostname. */
export const HOST = 253;
/** The length of an IPv6 address in its longest text form. */
export const ADDRESS = 45;

// Default collations ignore case, binary ones trailing spaces. MySQL and MariaDB each read the comment meant for it.
export const BYTE_BY_BYTE =
  "character set utf8mb4 collate /*M!100202 utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */";

type Key = (name: string, length: number) => Knex.ColumnBuilder;

/** Creates a table and its indexes. Those that a process created before it died are skipped. */
export async function createTable(
  knex: Knex,
  engine: Engine,
  name: string,
  define: (table: Knex.CreateTableBuilder, key: Key) => void,
): Promise<void> {
  const statements = knex.schema.createTable(name, (table) =>
    define(table, (column, length) =>
      engine === "mysql"
        ? table.specificType(column, `varchar(${length}) ${BYTE_BY_BYTE}`)
        : table.string(column, length),
    ),
  );
  for (const { sql } of statements.toSQL()) await createOnce(knex, sql);
}

export async function createOnce(knex: Knex, statement: string): Promise<void> {
  try {
    await knex.raw(statement);
  } catch (error) {
    if (!isAlreadyCreated(error)) throw error;
  }
}
