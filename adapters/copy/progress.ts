import type { Knex } from "knex";
import type { Database } from "../database/index.ts";
import { createTable } from "../database/migrations/create-table.ts";
import { COPY_PROGRESS, sourceOfCopy } from "../database/migrations/unfinished-copy.ts";
import type { Key } from "./rows.ts";

const NAME = 64;

/**
 * What an unfinished copy has copied, in the target: one row per table, which changes in the transaction that inserts a
 * batch. A copy that was killed continues behind the last key.
 */
export type Progress = {
  /** Returns the source of the unfinished copy, if there is one. */
  source(): Promise<string | undefined>;
  /** Begins a copy. Called before the migrations, so servers and other commands refuse the target until the copy ends. */
  begin(source: string, tables: string[]): Promise<void>;
  /** Returns the last copied key of a table, and how many rows were copied. */
  of(table: string): Promise<{ lastKey?: Key; rows: number }>;
  advance(trx: Knex.Transaction, table: string, lastKey: Key, rows: number): Promise<void>;
  /** Ends the copy: from the commit on, servers may use the target. */
  end(trx: Knex.Transaction): Promise<void>;
  /** Drops the table of a copy that has ended. */
  remove(): Promise<void>;
};

type ProgressRow = { name: string; source: string; last_key: string | null; rows_copied: number };

/** Returns the progress that a target contains. */
export function createProgress({ knex, engine }: Pick<Database, "knex" | "engine">): Progress {
  const rows = (from: Knex = knex) => from<ProgressRow>(COPY_PROGRESS as never);
  return {
    source: () => sourceOfCopy(knex),

    async begin(source, tables) {
      await createTable(knex, engine, COPY_PROGRESS, (table) => {
        table.string("name", NAME).primary();
        table.text("source").notNullable();
        table.text("last_key"); // JSON
        table.bigInteger("rows_copied").notNullable();
      });
      await rows().insert(tables.map((name) => ({ name, source, last_key: null, rows_copied: 0 })));
    },

    async of(table) {
      const row = await rows().where({ name: table }).first();
      return {
        ...(row?.last_key && { lastKey: JSON.parse(row.last_key) as Key }),
        rows: row?.rows_copied ?? 0,
      };
    },

    async advance(trx, table, lastKey, count) {
      await rows(trx)
        .where({ name: table })
        .update({
          last_key: JSON.stringify(lastKey),
          rows_copied: trx.raw("rows_copied + ?", [count]) as never,
        });
    },

    async end(trx) {
      await rows(trx).delete();
    },

    remove: () => knex.schema.dropTableIfExists(COPY_PROGRESS),
  };
}
