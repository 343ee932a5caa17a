import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { AggregatorRegistry, Counter, Registry } from "prom-client";
import type { Log } from "../log.ts";

export type Metrics = { name: string; help: string; type: string; aggregator: string; values: object[] }[];

const ASK = "linkgate:metrics:ask";
const COLLECT = "linkgate:metrics:collect";
const SNAPSHOT = "linkgate:metrics:snapshot";
const ANSWER = "linkgate:metrics:answer";
type Message = { channel: string; metrics?: Metrics };

// A worker that takes longer is represented by its last snapshot.
const COLLECT_MS = 3000;
// How long a worker waits for the primary process. Prometheus waits for 10 s by default.
const ANSWER_MS = 6000;

/** Adds counters up and takes the longest of delays. */
export function combineMetrics(all: Metrics[]): Registry {
  return AggregatorRegistry.aggregate(all);
}

function sumOf(all: Metrics[]): Metrics {
  return combineMetrics(all).getMetricsAsArray() as unknown as Metrics;
}

// prom-client averages delays and leaves out what it can't add up.
const MAXIMA = /^linkgate_(nodejs_eventloop_lag|process_max_fds|process_start_time)/;

export async function readOwnMetrics(registry: Registry): Promise<Metrics> {
  const metrics = (await registry.getMetricsAsJSON()) as unknown as Metrics;
  return metrics.map((metric) => ({ ...metric, aggregator: aggregatorOf(metric) }));
}

function aggregatorOf({ name, type, aggregator }: Metrics[number]): string {
  if (isCumulative({ type })) return "sum";
  return MAXIMA.test(name) ? "max" : aggregator;
}

function isCumulative({ type }: { type: string }): boolean {
  return type === "counter" || type === "histogram";
}

export function shareMetrics(registry: Registry) {
  if (!cluster.isWorker) return { read: () => readOwnMetrics(registry), async handOver() {} };
  let answer: PromiseWithResolvers<Metrics> | undefined;

  async function sendSnapshot() {
    const message = { channel: SNAPSHOT, metrics: await readOwnMetrics(registry) };
    await new Promise<void>((resolve) => {
      if (!process.connected) resolve();
      else process.send?.(message, undefined, undefined, () => resolve());
    });
  }

  process.on("message", ({ channel, metrics }: Message) => {
    if (channel === COLLECT) void sendSnapshot();
    if (channel !== ANSWER) return;
    answer?.resolve(metrics as Metrics);
    answer = undefined;
  });
  // Until then, the primary process asks for nothing: a worker that is starting would keep every scrape waiting.
  void sendSnapshot();

  return {
    /** Otherwise, counters would go backward when this process ends. */
    handOver: sendSnapshot,
    /** Concurrent calls share an answer. Throws an error if the primary process doesn't answer. */
    async read(): Promise<Metrics> {
      if (!answer) process.send?.({ channel: ASK } satisfies Message);
      answer ??= Promise.withResolvers<Metrics>();
      const { promise } = answer;
      const metrics = await resultWithin(ANSWER_MS, promise);
      if (metrics) return metrics;
      answer = undefined;
      throw new Error("the primary process did not answer");
    },
  };
}

/** Registers a counter of what is counted elsewhere. */
export function registerCount(registry: Registry, name: string, help: string, read: () => number): void {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}

export function registerLostLines(registry: Registry, { loss }: Pick<Log, "loss">): void {
  const help = "Lines of the log that could not be written";
  registerCount(registry, "linkgate_log_lines_lost_total", help, () => loss().lines);
}

/** The primary process has a log, too. */
export function collectWorkerMetrics(log: Pick<Log, "loss">): void {
  const own = new Registry();
  registerLostLines(own, log);
  const snapshots = new Map<Worker, Metrics>();
  // The counters of workers that have ended.
  let ended: Metrics = [];
  let collecting: Promise<unknown> | undefined;

  async function collect() {
    const signal = AbortSignal.timeout(COLLECT_MS);
    const workers = [...snapshots.keys()].filter((worker) => worker.isConnected());
    for (const worker of workers) worker.send({ channel: COLLECT } satisfies Message);
    await Promise.allSettled(workers.map((worker) => once(worker, SNAPSHOT, { signal })));
    collecting = undefined;
  }

  async function answer(worker: Worker) {
    collecting ??= collect();
    await collecting;
    const metrics = sumOf([await readOwnMetrics(own), ended, ...snapshots.values()]);
    if (worker.isConnected()) worker.send({ channel: ANSWER, metrics } satisfies Message);
  }

  cluster.on("message", (worker, { channel, metrics }: Message) => {
    if (channel === ASK) void answer(worker);
    if (channel !== SNAPSHOT) return;
    snapshots.set(worker, metrics as Metrics);
    worker.emit(SNAPSHOT);
  });

  // After its last message, unlike `exit`.
  cluster.on("disconnect", (worker) => {
    ended = sumOf([ended, (snapshots.get(worker) ?? []).filter(isCumulative)]);
    snapshots.delete(worker);
    worker.emit(SNAPSHOT);
  });
}

/** Resolves to undefined if the work takes longer than `ms`, and doesn't cancel it. */
export async function resultWithin<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const { promise: deadline, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, ms, undefined);
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
