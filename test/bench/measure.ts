import { cpuMsOf } from "./cpu-time.ts";
import { createTally, type NextRequest, onSchedule, type Result, saturate, type Tally } from "./load.ts";
import type { ServerProcess } from "./process.ts";

/** What is measured: a running server, and the requests to it. */
export type Subject = {
  name: string;
  server: Pick<ServerProcess, "port" | "cpuMs">;
  next: NextRequest;
  expected: number | number[];
};

/** What a subject did with a number of connections. */
export type Level = {
  connections: number;
  /** Requests per second: the median of the rounds, and the spread between the slowest and the fastest in percent. */
  rate: number;
  spread: number;
  p50: number;
  p99: number;
  /** Processor time of the server, with all its threads and workers, in microseconds per request. */
  cpuUs: number;
  /** The share of its core that the load generator used. Near 1, a faster server would look no faster. */
  generator: number;
};

export type Measured = {
  levels: Level[];
  /** The number of expected responses, including the warm-up. */
  answered: number;
};

const CONNECTIONS = [16, 64];
const ROUNDS = 3;
const WARM_UP_S = 1;
const SECONDS = 2;
// Turns are short, because the speed of a virtual machine can change threefold within seconds.
const TURN_S = 0.5;

type Cell = { subject: Subject; connections: number; rounds: Round[] };
type Round = Result & { cpuUs: number; generator: number };

/** Measures subjects side by side. In each round they take many short turns, so a slow moment affects all of them. */
export async function interleaved(
  subjects: Subject[],
  { warmUp = WARM_UP_S, seconds = SECONDS, connections = CONNECTIONS } = {},
): Promise<Map<string, Measured>> {
  const cells = connections.flatMap((count) =>
    subjects.map((subject): Cell => ({ subject, connections: count, rounds: [] })),
  );
  const answered = new Map<string, number>();
  for (let round = -1; round < ROUNDS; round++) {
    const turns = (round < 0 ? warmUp : seconds) / TURN_S;
    for (const [cell, result] of await takeTurns(cells, turns)) {
      const { name } = cell.subject;
      if (result.wrong) throw new Error(`${name}: ${result.wrong} unexpected responses`);
      answered.set(name, (answered.get(name) ?? 0) + result.answered);
      if (round >= 0) cell.rounds.push(result);
    }
  }
  return new Map(
    subjects.map((subject) => {
      const own = cells.filter((cell) => cell.subject === subject);
      return [subject.name, { levels: own.map(levelOf), answered: answered.get(subject.name) ?? 0 }];
    }),
  );
}

async function takeTurns(cells: Cell[], turns: number): Promise<Map<Cell, Round>> {
  const tallies = new Map<Cell, { tally: Tally; cpuMs: number; generatorMs: number }>(
    cells.map((cell) => [cell, { tally: createTally(cell.subject.expected), cpuMs: 0, generatorMs: 0 }]),
  );
  for (let turn = 0; turn < turns; turn++) {
    for (const [{ subject, connections }, entry] of tallies) {
      const { server, next } = subject;
      const [before, generatorBefore] = [server.cpuMs(), cpuMsOf(process.pid, false)];
      await saturate({ port: server.port, next, seconds: TURN_S, connections }, entry.tally);
      entry.cpuMs += server.cpuMs() - before;
      entry.generatorMs += cpuMsOf(process.pid, false) - generatorBefore;
    }
  }
  return new Map(
    [...tallies].map(([cell, { tally, cpuMs, generatorMs }]) => [
      cell,
      {
        ...tally.result(),
        cpuUs: (cpuMs * 1000) / tally.count(),
        generator: generatorMs / (turns * TURN_S * 1000),
      },
    ]),
  );
}

/** Measures the latencies of requests at a fixed rate. */
export async function scheduled(
  { name, server, next, expected }: Subject,
  rate: number,
  seconds: number,
  isPrecise = true,
): Promise<Result> {
  const result = await onSchedule({ port: server.port, next, expected, rate, seconds, isPrecise });
  if (result.wrong) throw new Error(`${name}: ${result.wrong} unexpected responses`);
  return result;
}

/** A subject, and the requests per second that it gets. */
export type Paced = { subject: Subject; rate: number };

/**
 * Returns the median processor time per request of each subject, in microseconds, at a fixed rate, and the answers of all.
 * The generator leaves its core to the servers while no request is due.
 */
export async function cpuOnSchedule(paced: Paced[], seconds: number) {
  const cpuUs = paced.map((): number[] => []);
  let answered = 0;
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { subject, rate }] of paced.entries()) {
      const before = subject.server.cpuMs();
      const result = await scheduled(subject, rate, seconds, false);
      cpuUs[index]?.push(((subject.server.cpuMs() - before) * 1000) / result.answered);
      answered += result.answered;
    }
  }
  return { cpuUs: cpuUs.map(median), answered };
}

/** Returns the middle one of an odd number of values. */
export function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

function levelOf({ connections, rounds }: Cell): Level {
  const rates = rounds.map(({ rate }) => rate);
  const rate = median(rates);
  return {
    connections,
    rate,
    spread: ((Math.max(...rates) - Math.min(...rates)) / rate) * 100,
    p50: median(rounds.map(({ p50 }) => p50)),
    p99: median(rounds.map(({ p99 }) => p99)),
    cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)),
    generator: median(rounds.map(({ generator }) => generator)),
  };
}
