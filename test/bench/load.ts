import { type Connection, openConnection } from "./connection.ts";

/** The bytes of a request, or with a function that gets the body of the response. */
export type Request = string | { text: string; answered(body: string): void };

/** Returns the next request. `index` counts from 0 within a tally. */
export type NextRequest = (index: number) => Request;

export type Result = {
  /** Responses per second. */
  rate: number;
  /** Milliseconds from when a request was due (or sent, in a closed loop) to the end of its response. */
  p50: number;
  p99: number;
  answered: number;
  /** Responses with an unexpected status. */
  wrong: number;
};

type LoadOptions = { port: number; next: NextRequest; expected: number | number[]; seconds: number };

// Enough connections to send the requests that become due while a server stalls.
const SCHEDULED_CONNECTIONS = 64;

/** Runs a closed loop: each connection sends its next request after the response. */
export async function saturate(
  { port, next, seconds, connections }: Omit<LoadOptions, "expected"> & { connections: number },
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

/**
 * Runs an open loop: requests are due at a fixed rate, and latency counts from when they were due. A precise one occupies
 * its core until each is due; otherwise, they are sent up to a millisecond late.
 */
export async function onSchedule(
  options: LoadOptions & { rate: number; isPrecise?: boolean },
): Promise<Result> {
  const { port, next, expected, seconds, rate, isPrecise = true } = options;
  const tally = createTally(expected);
  const start = performance.now();
  const total = Math.floor(rate * seconds);
  await onConnections(port, SCHEDULED_CONNECTIONS, async (connection) => {
    for (let mine = tally.take(); mine < total; mine = tally.take()) {
      const due = start + (mine / rate) * 1000;
      await until(due, isPrecise);
      tally.note(await connection.ask(next(mine)), due);
    }
  });
  tally.lasted((performance.now() - start) / 1000);
  return tally.result();
}

async function onConnections(port: number, count: number, use: (connection: Connection) => Promise<void>) {
  await Promise.all(
    Array.from({ length: count }, async () => {
      const connection = await openConnection(port);
      await use(connection).finally(() => connection.close());
    }),
  );
}

async function until(due: number, isPrecise: boolean): Promise<void> {
  const wait = due - performance.now();
  if (!isPrecise) {
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
    return;
  }
  if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait - 0.5));
  while (performance.now() < due) await new Promise((resolve) => setImmediate(resolve));
}

/** The results of the requests to one server, over one or more periods. */
export type Tally = ReturnType<typeof createTally>;

/** Creates a tally. `expected` are the statuses of successful responses. */
export function createTally(expected: number | number[]) {
  const good = new Set([expected].flat());
  const times: number[] = [];
  let index = 0;
  let seconds = 0;
  let wrong = 0;
  return {
    /** The number of the next request. */
    take: () => index++,
    note(status: number, since: number) {
      times.push(performance.now() - since);
      if (!good.has(status)) wrong++;
    },
    /** Adds a period. */
    lasted(further: number) {
      seconds += further;
    },
    /** The number of responses so far. */
    count: () => times.length,
    /** The number of unexpected responses so far. */
    wrong: () => wrong,
    result(): Result {
      times.sort((a, b) => a - b);
      const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
      return {
        rate: times.length / seconds,
        p50: at(0.5),
        p99: at(0.99),
        answered: times.length - wrong,
        wrong,
      };
    },
  };
}
