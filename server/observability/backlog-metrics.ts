import { Registry } from "prom-client";
import type { Backlog } from "../../adapters/backlog.ts";
import { endsWithin } from "./ends-within.ts";
import { register, registerGauge } from "./samples.ts";
import { type Metrics, readOwnMetrics } from "./worker-metrics.ts";

// Prometheus waits for 10 s by default.
const TIMEOUT_MS = 3000;

/** Reads the metrics of the database, which are the same for all of its processes. */
export type ReadBacklogMetrics = () => Promise<Metrics>;

/**
 * Creates the metrics of what waits in the database. While it doesn't answer in time, `linkgate_database_up` is 0 and the
 * others are absent. Concurrent calls share the queries.
 */
export function createBacklogMetrics(readBacklog: () => Promise<Backlog>): ReadBacklogMetrics {
  const registry = new Registry();
  let backlog: Backlog | undefined;
  let reading: Promise<void> | undefined;

  async function read() {
    try {
      backlog = await readBacklog();
    } catch {
      // The error is counted, and requests that need the database log theirs.
      backlog = undefined;
    }
  }

  const gauge = (name: string, help: string, read: () => number | undefined) =>
    registerGauge(registry, { name, help, aggregator: "max" }, read);
  gauge("linkgate_database_up", "Whether the database answers", () => Number(backlog !== undefined));
  register(
    registry,
    {
      name: "linkgate_outbox_due",
      help: "Webhook deliveries and emails that are due, up to 10,000",
      type: "gauge",
      aggregator: "max",
    },
    () => samplesOf(backlog, "count"),
  );
  register(
    registry,
    {
      name: "linkgate_outbox_oldest_due_seconds",
      help: "How long the oldest due webhook delivery or email has waited",
      type: "gauge",
      aggregator: "max",
    },
    () => samplesOf(backlog, "seconds"),
  );
  gauge(
    "linkgate_purge_lag_seconds",
    "How long the oldest expired row has waited for the purge",
    () => backlog?.purgeSeconds,
  );
  gauge(
    "linkgate_clock_ahead_seconds",
    "How far the clock of the server is ahead of the database's",
    () => backlog?.clockAheadSeconds,
  );

  return async function readMetrics() {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    if (!(await endsWithin(TIMEOUT_MS, reading))) backlog = undefined;
    return readOwnMetrics(registry);
  };
}

function samplesOf(backlog: Backlog | undefined, field: "count" | "seconds") {
  if (!backlog) return [];
  const { deliveries, mails } = backlog;
  return [
    { value: deliveries[field], labels: { kind: "webhook" } },
    { value: mails[field], labels: { kind: "email" } },
  ];
}
