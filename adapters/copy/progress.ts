import type { Knex } from "knex";
import { createTable } from "../database/migrations/create-table.ts";
import type { Key } from "./rows.ts";

const PROGRESS = "copy_progress";
const NAME = 64;

/**
 * What an unfinished copy has copied, in the target: one row per table, which changes in the transaction that inserts a
 * batch. A copy that was killed continues behind the last key.
 */
export type Progress = {
  /** Returns the source of the unfinished copy, if there is one. */
  source(): Promise<string | undefined>;
  /** Begins a copy from a source. */
  begin(source: string, tables: string[]): Promise<void>;
  /** Returns the last copied key of a table, and how many rows were copied. */
  of(table: string): Promise<{ lastKey?: Key; rows: number }>;
  advance(trx: Knex.Transaction, table: string, lastKey: Key, rows: number): Promise<void>;
  /** Ends the copy. */
  end(): Promise<void>;
};

type ProgressRow = { name: string; source: string; last_key: string | null; rows_copied: number };

/** Returns the progress that a target contains. */
export function createProgress(knex: Knex): Progress {
  const rows = (from: Knex = knex) => from<ProgressRow>(PROGRESS as never);
  return {
    async source() {
      if (!(await knex.schema.hasTable(PROGRESS))) return undefined;
      return (await rows().first("source"))?.source;
    },

    async begin(source, tables) {
      await createTable(knex, PROGRESS, (table) => {
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

    end: () => knex.schema.dropTable(PROGRESS),
  };
}
