import { createTally, median, type NextRequest, onSchedule, type Result, saturate } from "./load.ts";
import { ownCpuMs, type ServerProcess } from "./process.ts";

/** What is measured: a running server, and the requests to it with the statuses of their responses. */
export type Subject = {
  name: string;
  server: Pick<ServerProcess, "port" | "cpuMs">;
  next: NextRequest;
  expected: number | number[];
};

/** What a subject did with a number of connections. */
export type Level = ReturnType<typeof levelOf>;

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

type Round = Awaited<ReturnType<ReturnType<typeof meterOf>>>;

/** Measures subjects side by side. In each round they take many short turns, so a slow moment affects all of them. */
export async function interleaved(
  subjects: Subject[],
  { warmUp = WARM_UP_S, seconds = SECONDS, connections = CONNECTIONS } = {},
): Promise<Map<string, Measured>> {
  const cells = connections.flatMap((count) =>
    subjects.map((subject) => ({ subject, connections: count, answered: 0, rounds: [] as Round[] })),
  );
  for (let round = -1; round < ROUNDS; round++) {
    const turns = (round < 0 ? warmUp : seconds) / TURN_S;
    const meters = cells.map((cell) => ({ cell, turn: meterOf(cell.subject, cell.connections) }));
    for (let turn = 1; turn < turns; turn++) for (const meter of meters) await meter.turn();
    for (const { cell, turn } of meters) {
      const result = await turn();
      cell.answered += result.answered;
      if (round >= 0) cell.rounds.push(result);
    }
  }
  return new Map(
    subjects.map(({ name }) => {
      const own = cells.filter(({ subject }) => subject.name === name);
      const levels = own.map(({ rounds }) => levelOf(rounds));
      return [name, { levels, answered: own.reduce((sum, { answered }) => sum + answered, 0) }];
    }),
  );
}

/** Returns a function that takes another turn, and returns what all of them amount to. */
function meterOf({ name, server, next, expected }: Subject, connections: number) {
  const tally = createTally(expected);
  let [cpuMs, generatorMs, turns] = [0, 0, 0];
  return async () => {
    const [before, generatorBefore] = [server.cpuMs(), ownCpuMs(process.pid)];
    await saturate({ port: server.port, next, seconds: TURN_S, connections }, tally);
    cpuMs += server.cpuMs() - before;
    generatorMs += ownCpuMs(process.pid) - generatorBefore;
    turns++;
    const { rate, p99, answered } = expectNoneWrong(name, tally.result());
    return {
      rate,
      p99,
      answered,
      /** Processor time of the server, with all its threads and workers, in microseconds per request. */
      cpuUs: (cpuMs * 1000) / answered,
      /** The share of its core that the load generator used. Near 1, a faster server would look no faster. */
      generator: generatorMs / (turns * TURN_S * 1000),
    };
  };
}

/** Measures the latencies of requests at a fixed rate. */
export async function scheduled({ name, server, next, expected }: Subject, rate: number, seconds: number) {
  return expectNoneWrong(name, await onSchedule({ port: server.port, next, expected, rate, seconds }));
}

function expectNoneWrong(name: string, result: Result): Result {
  if (result.wrong) throw new Error(`${name}: ${result.wrong} unexpected responses`);
  return result;
}

function levelOf(rounds: Round[]) {
  const middle = (value: keyof Round) => median(rounds.map((round) => round[value]));
  const rates = rounds.map((round) => round.rate);
  const rate = middle("rate");
  return {
    /** Requests per second: the median of the rounds, and the spread between them in percent. */
    rate,
    spread: ((Math.max(...rates) - Math.min(...rates)) / rate) * 100,
    p99: middle("p99"),
    cpuUs: middle("cpuUs"),
    generator: middle("generator"),
  };
}
