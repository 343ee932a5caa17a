import { connect, type Socket } from "node:net";

/** Returns the bytes of the next request. `index` counts from 0 within a tally. */
export type NextRequest = (index: number) => string;

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

const CONNECTIONS = 16;
// Enough connections to send the requests that become due while a server stalls.
const SCHEDULED_CONNECTIONS = 64;

/**
 * Runs a closed loop: each connection sends its next request after the response. It uses sockets directly, because a
 * generator that is slower than the server would measure itself.
 */
export async function saturate(
  { port, next, seconds }: Omit<LoadOptions, "expected">,
  tally: Tally,
): Promise<void> {
  const start = performance.now();
  const end = start + seconds * 1000;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      const connection = await open(port);
      while (performance.now() < end) {
        const sent = performance.now();
        tally.note(await connection.ask(next(tally.take())), sent);
      }
      connection.close();
    }),
  );
  tally.lasted((performance.now() - start) / 1000);
}

/** Runs an open loop: requests are due at a fixed rate, and latency counts from when they were due. */
export async function onSchedule(options: LoadOptions & { rate: number }): Promise<Result> {
  const { port, next, expected, seconds, rate } = options;
  const tally = createTally(expected);
  const start = performance.now();
  const total = Math.floor(rate * seconds);
  await Promise.all(
    Array.from({ length: SCHEDULED_CONNECTIONS }, async () => {
      const connection = await open(port);
      for (let mine = tally.take(); mine < total; mine = tally.take()) {
        const due = start + (mine / rate) * 1000;
        await until(due);
        tally.note(await connection.ask(next(mine)), due);
      }
      connection.close();
    }),
  );
  tally.lasted((performance.now() - start) / 1000);
  return tally.result();
}

async function until(due: number): Promise<void> {
  const wait = due - performance.now();
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

type Connection = { ask(request: string): Promise<number>; close(): void };

/** A keep-alive connection that parses responses with a Content-Length, which all of these servers send. */
async function open(port: number): Promise<Connection> {
  const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  let received = "";
  let answer: ((status: number) => void) | undefined;
  let fail: ((error: Error) => void) | undefined;

  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    received += chunk;
    const head = received.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, head))?.[1] ?? 0);
    if (received.length < head + 4 + length) return;
    const status = Number(received.slice(9, 12));
    received = received.slice(head + 4 + length);
    answer?.(status);
  });
  socket.on("error", (error) => fail?.(error));
  socket.on("close", () => fail?.(new Error("the server closed the connection")));

  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        answer = resolve;
        fail = reject;
        socket.write(request, "latin1");
      }),
    close: () => socket.destroy(),
  };
}

/** Returns a request with a body. */
export function post(host: string, path: string, type: string, body: string, headers = ""): string {
  return `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`;
}

/** Returns a request without a body. */
export function get(host: string, path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
}
