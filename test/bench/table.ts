import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import type { Level, Measured } from "./measure.ts";

/**
 * One row of the result. Rates are per second, CPU is in microseconds per request. Where linkgate was measured with several
 * numbers of connections, there is a value for each, and the best ratio counts.
 */
export type Row = {
  name: string;
  ours: number[];
  cpu?: number[];
  reference?: number[];
  referenceCpu?: number[];
  /** ours / reference */
  ratio?: number[];
  atLeast?: number;
  atMost?: number;
  /** Is set if the row has a target. */
  ok?: boolean;
  note?: string;
};

type Target = { atLeast?: number; atMost?: number; note?: string };

/** Returns a row with the rates of one subject. */
export function rateRow(name: string, measured: Map<string, Measured>, subject: string, note = ""): Row {
  const levels = levelsOf(measured, subject);
  return {
    name,
    ours: levels.map(({ rate }) => rate),
    cpu: levels.map(({ cpuUs }) => cpuUs),
    note: joined(tails(levels), note),
  };
}

/** Returns a row that compares the rates of two subjects. */
export function compare(
  name: string,
  measured: Map<string, Measured>,
  [ours, reference]: [string, string],
  target: Target = {},
): Row {
  const row = rateRow(name, measured, ours, target.note);
  const levels = levelsOf(measured, reference);
  const referenceRates = levels.map(({ rate }) => rate);
  return judged(
    {
      ...row,
      reference: referenceRates,
      referenceCpu: levels.map(({ cpuUs }) => cpuUs),
      ratio: row.ours.map((rate, index) => rate / (referenceRates[index] as number)),
    },
    target,
  );
}

/** Returns a row that compares two values. */
export function compareValues(name: string, ours: number, reference: number, target: Target = {}): Row {
  const row: Row = { name, ours: [ours], reference: [reference], ratio: [ours / reference] };
  return judged({ ...row, ...(target.note && { note: target.note }) }, target);
}

/** Adds the target, which the best ratio has to reach, or the best value of a row without a reference. */
export function judged(row: Row, { atLeast, atMost }: Target): Row {
  const values = row.ratio ?? row.ours;
  if (atLeast !== undefined) return { ...row, atLeast, ok: Math.max(...values) >= atLeast };
  if (atMost !== undefined) return { ...row, atMost, ok: Math.min(...values) <= atMost };
  return row;
}

/** Returns the number of responses that a subject got as expected. */
export function answered(measured: Map<string, Measured>, name: string): number {
  return (measured.get(name) as Measured).answered;
}

// Above this share of a core, the load generator may limit the rate.
const BUSY_GENERATOR = 0.9;

function levelsOf(measured: Map<string, Measured>, name: string): Level[] {
  return (measured.get(name) as Measured).levels;
}

function tails(levels: Level[]): string {
  const p99 = levels.map((level) => level.p99.toFixed(1)).join(" · ");
  const spread = levels.map((level) => level.spread.toFixed(0)).join(" · ");
  const busy = Math.max(...levels.map(({ generator }) => generator));
  const warning = busy > BUSY_GENERATOR ? `, load generator at ${(busy * 100).toFixed(0)} %` : "";
  return `p99 ${p99} ms, spread ${spread} %${warning}`;
}

function joined(...parts: (string | undefined)[]): string {
  return parts.filter(Boolean).join(", ");
}

/** Describes the machine in one line. */
export function machine(): string {
  const [cpu] = cpus();
  return `${cpu?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, ${commandLine("uname", ["-sr"])}`;
}

/** Prints the table, and writes it to `BENCH_OUT` if set. */
export function report(rows: Row[]): void {
  const date = new Date().toISOString();
  console.log(`\n${machine()}\n${date}\n`);
  console.log("| | linkgate | CPU, µs | reference | CPU, µs | ratio | target | |");
  console.log("|---|---|---|---|---|---|---|---|");
  for (const row of rows) console.log(`| ${cellsOf(row).join(" | ")} |`);
  const file = process.env.BENCH_OUT;
  if (file) writeFileSync(file, `${JSON.stringify({ machine: machine(), date, rows }, null, 2)}\n`);
}

function cellsOf(row: Row): string[] {
  const { atLeast, atMost, ok } = row;
  const target = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : "";
  const verdict = ok === undefined ? "" : ok ? "ok" : "MISSED";
  const { name, ours, cpu, reference, referenceCpu, ratio, note } = row;
  return [
    name,
    numbers(ours),
    numbers(cpu),
    numbers(reference),
    numbers(referenceCpu),
    numbers(ratio),
    target,
    joined(verdict, note),
  ];
}

function numbers(values: number[] = []): string {
  const format = (value: number) =>
    value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 20 ? 1 : 2);
  return values.map(format).join(" · ");
}

function commandLine(command: string, args: string[]): string {
  try {
    return execFileSync(command, args, { encoding: "utf8" }).trim();
  } catch {
    return process.platform;
  }
}
