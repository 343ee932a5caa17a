/**
 * What statements do. `acquire` is the wait for a connection, `transaction` a whole transaction with its wait for a
 * connection or a lock.
 */
export const OPERATIONS = [
  "select",
  "insert",
  "update",
  "delete",
  "commit",
  "acquire",
  "transaction",
  "other",
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The connections of a process to a database server. */
export type Pool = { inUse: number; idle: number; waiting: number; max: number };

/** Observes the statements of a process. It must not throw. */
export type StatementObserver = {
  /**
   * Called before a statement or transaction. Returns a function that is called when it has ended, with its error if it
   * failed. `sql` has placeholders instead of values; `transaction` is the ID of the transaction of a statement.
   */
  begin(operation: Operation, sql: string, transaction?: string): (error?: unknown) => void;
};

const BY_WORD: Record<string, Operation> = {
  sel: "select",
  ins: "insert",
  upd: "update",
  del: "delete",
  com: "commit",
};
const WRITE_IN_WITH = /\b(insert|update|delete)\b/i;

/** Returns what a statement does, by its first word. */
export function operationOf(sql: string): Operation {
  const word = sql.slice(0, 3).toLowerCase();
  if (word !== "wit") return BY_WORD[word] ?? "other";
  const [, operation = "select"] = WRITE_IN_WITH.exec(sql) ?? [];
  return operation.toLowerCase() as Operation;
}

/** Runs a statement, and tells the observer when it has ended. */
export function observed<T>(
  observer: StatementObserver | undefined,
  operation: Operation,
  sql: string,
  run: () => Promise<T>,
  transaction?: string,
): Promise<T> {
  if (!observer) return run();
  const end = observer.begin(operation, sql, transaction);
  return run().then(
    (result) => {
      end();
      return result;
    },
    (error) => {
      end(error);
      throw error;
    },
  );
}

/** Combines observers. */
export function observeWithAll(observers: (StatementObserver | undefined)[]): StatementObserver {
  const present = observers.filter((observer) => observer !== undefined);
  const [only, ...others] = present;
  if (only && others.length === 0) return only;
  return {
    begin(...statement) {
      const ends = present.map((observer) => observer.begin(...statement));
      return (error) => {
        for (const end of ends) end(error);
      };
    },
  };
}
