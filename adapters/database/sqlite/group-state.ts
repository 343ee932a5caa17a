/** A row to insert. */
export type Row = Record<string, string | number | boolean | null>;

/**
 * What the writes of one SQLite transaction share, such as a counter: read when the first write needs it, kept in memory,
 * and stored once, before the commit. The transaction holds the lock of the database, so it stays current meanwhile.
 */
export type GroupState = {
  /** Adds one write. Returns its completed row, or none if `end` stores it. `undo` is called if the write fails. */
  add(row: Row): { row: Row | undefined; undo(): void };
  /** Returns the statements that store the state. */
  end(): { sql: string; bindings: unknown[] }[];
};

/** Begins with the state that is stored. `read` runs a SELECT. */
export type BeginGroupState = (read: (sql: string, bindings: unknown[]) => Row[]) => GroupState;
