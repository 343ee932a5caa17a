import cluster, { type Worker } from "node:cluster";
import { AggregatorRegistry, Counter, Registry } from "prom-client";
import type { Log } from "../log.ts";

export type Metrics = { name: string; help: string; type: string; aggregator: string; values: object[] }[];

const ASK = "linkgate:metrics:ask";
const COLLECT = "linkgate:metrics:collect";
const SNAPSHOT = "linkgate:metrics:snapshot";
const ANSWER = "linkgate:metrics:answer";
type Message = { channel: string; id?: number; metrics?: Metrics };

// A worker that takes longer is represented by its last snapshot.
const COLLECT_MS = 3000;
// How long a worker waits for the primary process. Prometheus waits for 10 s by default.
const ANSWER_MS = 6000;

/** Adds counters up and takes the longest of delays. */
export function combineMetrics(all: Metrics[]): Registry {
  return AggregatorRegistry.aggregate(all);
}

async function readCombined(all: Metrics[]): Promise<Metrics> {
  return (await combineMetrics(all).getMetricsAsJSON()) as unknown as Metrics;
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
  const waiting = new Map<number, (metrics: Metrics) => void>();
  let count = 0;

  async function sendSnapshot() {
    const message = { channel: SNAPSHOT, metrics: await readOwnMetrics(registry) };
    await new Promise<void>((resolve) => {
      if (!process.connected) resolve();
      else process.send?.(message, undefined, undefined, () => resolve());
    });
  }

  process.on("message", (message: Message) => {
    if (message.channel === COLLECT) void sendSnapshot();
    if (message.channel === ANSWER) waiting.get(message.id as number)?.(message.metrics as Metrics);
  });
  // Until then, the primary process asks for nothing: a worker that is starting would keep every scrape waiting.
  void sendSnapshot();

  return {
    /** Otherwise, counters would go backward when this process ends. */
    handOver: sendSnapshot,
    /** Throws an error if the primary process doesn't answer. */
    read(): Promise<Metrics> {
      const id = ++count;
      const { promise, resolve, reject } = Promise.withResolvers<Metrics>();
      waiting.set(id, resolve);
      const timer = setTimeout(reject, ANSWER_MS, new Error("the primary process did not answer"));
      process.send?.({ channel: ASK, id } satisfies Message);
      return promise.finally(() => {
        clearTimeout(timer);
        waiting.delete(id);
      });
    },
  };
}

export function registerLostLines(registry: Registry, { loss }: Pick<Log, "loss">): void {
  new Counter({
    name: "linkgate_log_lines_lost_total",
    help: "Lines of the log that could not be written",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(loss().lines);
    },
  });
}

/** The primary process has a log, too. */
export function collectWorkerMetrics(log: Pick<Log, "loss">): void {
  const own = new Registry();
  registerLostLines(own, log);
  const snapshots = new Map<Worker, Metrics>();
  const collecting = new Map<Worker, PromiseWithResolvers<void>>();
  // The counters of workers that have ended, the first of them added up.
  const ended: Metrics[] = [];
  let adding = Promise.resolve();

  async function addUp() {
    const { length } = ended;
    const sum = await readCombined(ended.slice());
    ended.splice(0, length, sum);
  }

  function collectFrom(worker: Worker): Promise<void> {
    const collected = collecting.get(worker) ?? Promise.withResolvers<void>();
    if (!collecting.has(worker)) worker.send({ channel: COLLECT } satisfies Message);
    collecting.set(worker, collected);
    return collected.promise;
  }

  async function answer(worker: Worker, id: number) {
    const workers = [...snapshots.keys()].filter((each) => each.isConnected());
    await endsWithin(COLLECT_MS, Promise.all(workers.map(collectFrom)));
    const metrics = await readCombined([await readOwnMetrics(own), ...ended, ...snapshots.values()]);
    if (worker.isConnected()) worker.send({ channel: ANSWER, id, metrics } satisfies Message);
  }

  function settle(worker: Worker) {
    collecting.get(worker)?.resolve();
    collecting.delete(worker);
  }

  cluster.on("message", (worker, message: Message) => {
    if (message.channel === ASK) void answer(worker, message.id as number);
    if (message.channel !== SNAPSHOT) return;
    snapshots.set(worker, message.metrics as Metrics);
    settle(worker);
  });

  // After its last message, unlike `exit`.
  cluster.on("disconnect", (worker) => {
    settle(worker);
    const last = snapshots.get(worker);
    if (!last) return;
    snapshots.delete(worker);
    ended.push(last.filter(isCumulative));
    adding = adding.then(addUp);
  });
}

/** Doesn't cancel work that takes longer than `ms`. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const { promise: deadline, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  try {
    return await Promise.race([work.then(() => true), deadline]);
  } finally {
    clearTimeout(timer);
  }
}
