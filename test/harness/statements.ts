import type { StatementObserver } from "../../adapters/database/statement-observer.ts";

/** Hears the SQL of each statement, without its values, and the ID of its transaction, if any. */
export type StatementListener = (sql: string, transaction?: string) => void;
/** Adds a listener, and returns a function that removes it. */
export type OnStatement = (listener: StatementListener) => () => void;

export function createStatementListeners(): { observer: StatementObserver; onStatement: OnStatement } {
  const listeners = new Set<StatementListener>();
  return {
    observer: {
      begin(_operation, sql, transaction) {
        if (sql) for (const listener of listeners) listener(sql, transaction);
        return () => {};
      },
    },
    onStatement(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
