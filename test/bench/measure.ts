import { createTally, type NextRequest, onSchedule, type Result, saturate } from "./load.ts";

/** What is measured: a running server, and the requests to it. */
export type Subject = { name: string; port: number; next: NextRequest; expected: number | number[] };

export type Measured = {
  /** Requests per second: the median of the rounds, and the spread between the slowest and the fastest in percent. */
  rate: number;
  spread: number;
  p50: number;
  p99: number;
  /** The number of expected responses, including the warm-up. */
  answered: number;
};

const ROUNDS = 3;
const WARM_UP_S = 2;
// Turns are short, because the speed of a virtual machine can change threefold within seconds.
const TURN_S = 0.5;

/** Measures subjects side by side. In each round they take many short turns, so a slow moment affects all of them. */
export async function interleaved(subjects: Subject[], seconds: number): Promise<Map<string, Measured>> {
  const results = new Map<string, Result[]>(subjects.map(({ name }) => [name, []]));
  const answered = new Map<string, number>();
  for (let round = -1; round < ROUNDS; round++) {
    const tallies = new Map(subjects.map((subject) => [subject, createTally(subject.expected)]));
    for (let turn = 0; turn < (round < 0 ? WARM_UP_S : seconds) / TURN_S; turn++)
      for (const [subject, tally] of tallies) await saturate({ ...subject, seconds: TURN_S }, tally);
    for (const [subject, tally] of tallies) {
      const result = tally.result();
      if (result.wrong) throw new Error(`${subject.name}: ${result.wrong} unexpected responses`);
      answered.set(subject.name, (answered.get(subject.name) ?? 0) + result.answered);
      if (round >= 0) results.get(subject.name)?.push(result);
    }
  }
  return new Map(
    subjects.map(({ name }) => [name, summary(results.get(name) ?? [], answered.get(name) ?? 0)]),
  );
}

/** Measures the latencies of requests at a fixed rate. */
export async function scheduled(subject: Subject, rate: number, seconds: number): Promise<Result> {
  const result = await onSchedule({ ...subject, rate, seconds });
  if (result.wrong) throw new Error(`${subject.name}: ${result.wrong} unexpected responses`);
  return result;
}

function summary(rounds: Result[], answered: number): Measured {
  const median = (pick: (result: Result) => number) => {
    const sorted = rounds.map(pick).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] as number;
  };
  const rates = rounds.map(({ rate }) => rate);
  const rate = median((result) => result.rate);
  return {
    rate,
    spread: ((Math.max(...rates) - Math.min(...rates)) / rate) * 100,
    p50: median((result) => result.p50),
    p99: median((result) => result.p99),
    answered,
  };
}
