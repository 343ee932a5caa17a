import type { Build, Row } from "./prepared-statements.ts";

/** What is inserted with one write: a row into each of the tables, in order. */
export type Insertion = {
  tables: { name: string; columns: string[] }[];
  /**
   * The column of the first table that callers choose and that is unique. A batch is inserted in its order, so that
   * batches with the same values wait for each other instead of ending in a deadlock.
   */
  uniqueColumn?: string;
  /** Counts writes against a limit in the same transaction. A write has one more row for it, after those of the tables. */
  counter?: Counter;
  /** Returns the SQL of a statement that follows in the same transaction, for the rows of the last table in a table or query. */
  follow?: (rows: string) => string;
};

/** Counts writes by a key. A count above the limit becomes null, which its column refuses, so the write fails as a whole. */
export type Counter = {
  /** The column of the row with the key. */
  key: string;
  /** Counts one write. */
  one: Build;
  /** Returns what several writes with one key count together. */
  sum(rows: Row[]): Row;
  /** Returns the SQL that counts all sums of a query on PostgreSQL, if a condition is true. */
  records(sums: string, condition: string): string;
};

/** Groups writes by the key that they are counted by, and returns what each group counts, in the same order in every process. */
export function sumsOf({ key, sum }: Counter, batch: Row[][]): Row[] {
  const groups = Map.groupBy(batch, (rows) => String(rows.at(-1)?.[key]));
  const keys = [...groups.keys()].sort();
  return keys.map((key) => sum((groups.get(key) as Row[][]).map((rows) => rows.at(-1) as Row)));
}
