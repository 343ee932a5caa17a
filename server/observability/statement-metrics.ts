import type { Registry } from "prom-client";
import { ERROR_KINDS, errorKindOf } from "../../adapters/database/error-kind.ts";
import { OPERATIONS, type StatementObserver } from "../../adapters/database/statement-observer.ts";
import { Durations, register, registerCounter } from "./samples.ts";

// Upper bounds in seconds. A read of SQLite takes some microseconds.
const BOUNDS = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10];
const DURATION = "linkgate_database_operation_duration_seconds";

/** Registers the metrics of statements, and returns the observer that counts them. */
export function createStatementMetrics(registry: Registry): StatementObserver {
  const durations = new Map(OPERATIONS.map((operation) => [operation, new Durations(BOUNDS)]));
  register(
    registry,
    {
      name: DURATION,
      help: "Duration of database operations in seconds; acquire is the wait for a connection",
      type: "histogram",
    },
    () => [...durations].flatMap(([operation, each]) => each.samples(DURATION, { operation })),
  );
  const countError = registerCounter(registry, {
    name: "linkgate_database_errors_total",
    help: "Failed database operations by reason, without violated constraints",
    label: "kind",
    values: ERROR_KINDS,
  });
  // The error of a statement is also that of its transaction.
  const counted = new WeakSet<object>();

  function recordError(error: unknown) {
    const kind = errorKindOf(error);
    if (!kind || counted.has(error as object)) return;
    counted.add(error as object);
    countError(kind);
  }

  return {
    begin(operation) {
      const started = performance.now();
      return (error) => {
        durations.get(operation)?.observe((performance.now() - started) / 1000);
        if (error !== undefined) recordError(error);
      };
    },
  };
}
