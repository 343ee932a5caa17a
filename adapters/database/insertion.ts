import type { Knex } from "knex";
import type { Build } from "./prepared-statements.ts";
import type { BeginGroupState, Row } from "./sqlite/group-state.ts";

/** The tables to insert into, in order. */
export type Insertion = {
  tables: { name: string; columns: string[]; state?: BeginGroupState }[];
  /**
   * The column of the first table that callers choose and that is unique. A batch is inserted in its order, so that
   * batches with the same values wait for each other instead of ending in a deadlock.
   */
  uniqueColumn?: string;
  /** Builds a statement that follows in the same transaction, for the rows of the last table with these ids. */
  follow?: (knex: Knex, ids: unknown[]) => Knex.Raw;
  /** On SQLite: leaves out that statement for the rows that `add` completes without one. */
  followState?: BeginGroupState;
  /** The same on PostgreSQL: returns the SQL of a statement for all rows of a query, given by its name. */
  followRecords?: (name: string) => string;
  /** Adds up what a batch inserts, last, so that locks on counters are held briefly. The row after those of the tables. */
  counter?: {
    /** Counts one row. `state` adds up the rows of a group on SQLite. */
    one: Build;
    state: BeginGroupState;
    /** Counts several rows. Concurrent batches of one process have different numbers. */
    many(knex: Knex, rows: Row[], batch: number): Knex.Raw;
    /** The same as SQL for PostgreSQL, with placeholders for a JSON array of rows and the number, and a condition. */
    records(rows: string, batch: string, condition: string): string;
  };
};
