import type { StatementObserver } from "./statement-observer.ts";

export type DatabaseOptions = {
  /** On a server, how long a statement or transaction may take, 10 s by default. Migrations and reads aside may take longer. */
  timeoutMs?: number | undefined;
  /** Observes every statement. */
  observer?: StatementObserver | undefined;
};
