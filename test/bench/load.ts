import { type Connection, openConnection } from "./connection.ts";

/** The bytes of a request, or with a function that gets the body of the response. */
export type Request = string | { text: string; answered(body: string): void };

/** Returns the next request. `index` counts from 0 within a tally. */
export type NextRequest = (index: number) => Request;

export type Result = ReturnType<Tally["result"]>;

type LoadOptions = { port: number; next: NextRequest; seconds: number };

// Enough connections to send the requests that become due while a server stalls.
const SCHEDULED_CONNECTIONS = 64;

/** Runs a closed loop: each connection sends its next request after the response. */
export async function saturate(
  { port, next, seconds, connections }: LoadOptions & { connections: number },
  tally: Tally,
): Promise<void> {
  const start = performance.now();
  const end = start + seconds * 1000;
  await onConnections(port, connections, async (connection) => {
    while (performance.now() < end) {
      const sent = performance.now();
      tally.note(await connection.ask(next(tally.take())), sent);
    }
  });
  tally.lasted((performance.now() - start) / 1000);
}

/** Runs an open loop: requests are due at a fixed rate, and latency counts from when they were due. */
export async function onSchedule(options: LoadOptions & { expected: number | number[]; rate: number }) {
  const { port, next, expected, seconds, rate } = options;
  const tally = createTally(expected);
  const start = performance.now();
  const total = Math.floor(rate * seconds);
  await onConnections(port, SCHEDULED_CONNECTIONS, async (connection) => {
    for (let mine = tally.take(); mine < total; mine = tally.take()) {
      const due = start + (mine / rate) * 1000;
      const wait = due - performance.now();
      if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait - 0.5));
      while (performance.now() < due) await new Promise((resolve) => setImmediate(resolve));
      tally.note(await connection.ask(next(mine)), due);
    }
  });
  tally.lasted((performance.now() - start) / 1000);
  return tally.result();
}

export async function onConnections(
  port: number,
  count: number,
  use: (connection: Connection) => Promise<void>,
): Promise<void> {
  const connections = Array.from({ length: count }, async () => {
    const connection = await openConnection(port);
    await use(connection).finally(() => connection.close());
  });
  await Promise.all(connections);
}

/** The results of the requests to one server, over one or more periods. */
type Tally = ReturnType<typeof createTally>;

/** Creates a tally. `expected` are the statuses of successful responses. */
export function createTally(expected: number | number[]) {
  const good = new Set([expected].flat());
  const times: number[] = [];
  let [index, seconds, wrong] = [0, 0, 0];
  return {
    take: () => index++,
    note(status: number, since: number) {
      times.push(performance.now() - since);
      if (!good.has(status)) wrong++;
    },
    lasted(further: number) {
      seconds += further;
    },
    result: () => ({
      /** Responses per second. */
      rate: times.length / seconds,
      /** Milliseconds from when a request was due (or sent, in a closed loop) to the end of its response. */
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      answered: times.length - wrong,
      /** Responses with an unexpected status. */
      wrong,
    }),
  };
}

/** Returns the value above a share of all values. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export const median = (values: number[]) => percentile(values, 0.5);
