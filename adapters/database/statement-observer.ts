import { keepReason } from "./errors.ts";

/** `acquire` is the wait for a connection, `transaction` a whole transaction with its waits. */
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

export type Pool = { inUse: number; idle: number; waiting: number; max: number };

/** Observes the statements of a process. It must not throw. */
export type StatementObserver = {
  /** Returns a function for the end, which gets the error, if any. `sql` has placeholders instead of values. */
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

export function operationOf(sql: string): Operation {
  const word = sql.slice(0, 3).toLowerCase();
  if (word !== "wit") return BY_WORD[word] ?? "other";
  const [, operation = "select"] = WRITE_IN_WITH.exec(sql) ?? [];
  return operation.toLowerCase() as Operation;
}

export function observed<T>(
  observer: StatementObserver | undefined,
  operation: Operation,
  sql: string,
  run: () => Promise<T>,
  transaction?: string,
): Promise<T> {
  return observer ? untilEnd([observer.begin(operation, sql, transaction)], run) : run();
}

/** Observes each statement until all are committed. */
export function observedTogether<T>(
  observer: StatementObserver | undefined,
  statements: { sql: string }[],
  run: () => Promise<T>,
): Promise<T> {
  return observer
    ? untilEnd(
        statements.map(({ sql }) => observer.begin(operationOf(sql), sql)),
        run,
      )
    : run();
}

async function untilEnd<T>(ends: ((error?: unknown) => void)[], run: () => Promise<T>): Promise<T> {
  try {
    const result = await run();
    for (const end of ends) end();
    return result;
  } catch (error) {
    keepReason(error);
    for (const end of ends) end(error);
    throw error;
  }
}

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
