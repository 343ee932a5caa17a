import { writeFileSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import type { Level, Measured } from "./measure.ts";

/** What a row is judged by: its ratios, or its values if there is no reference. The best one counts. */
export type Target = { atLeast?: number | undefined; atMost?: number | undefined; note?: string | undefined };

type Values = number | number[];
type Further = Target & { cpu?: Values; reference?: Values; referenceCpu?: Values };

export type Row = ReturnType<typeof row>;

/**
 * Returns a row. Rates are per second, CPU is in microseconds per request. Where linkgate was measured with several numbers
 * of connections, there is a value for each.
 */
export function row(name: string, value: Values, { cpu, reference, referenceCpu, ...target }: Further = {}) {
  const list = (values: Values = []) => [values].flat();
  const ours = list(value);
  const ratio = list(reference).map((other, index) => (ours[index] as number) / other);
  const ok = isReached(ratio.length > 0 ? ratio : ours, target);
  const others = { cpu: list(cpu), reference: list(reference), referenceCpu: list(referenceCpu) };
  return { name, ours, ...others, ratio, ...target, ok };
}

/** Whether the best value reaches the target; undefined without one. */
function isReached(values: number[], { atLeast, atMost }: Target): boolean | undefined {
  if (atLeast !== undefined) return Math.max(...values) >= atLeast;
  if (atMost !== undefined) return Math.min(...values) <= atMost;
  return undefined;
}

/** Returns a row that compares the rates of two subjects. */
export function compare(
  name: string,
  measured: Map<string, Measured>,
  [ours, reference]: [ours: string, reference: string],
  { note, ...target }: Target = {},
): Row {
  const [levels, others] = [levelsOf(measured, ours), levelsOf(measured, reference)];
  return row(name, ratesOf(levels), {
    cpu: cpuOf(levels),
    reference: ratesOf(others),
    referenceCpu: cpuOf(others),
    ...target,
    note: [tails(levels), note].filter(Boolean).join(", "),
  });
}

const ratesOf = (levels: Level[]) => levels.map(({ rate }) => rate);
export const cpuOf = (levels: Level[]) => levels.map(({ cpuUs }) => cpuUs);

export function levelsOf(measured: Map<string, Measured>, name: string): Level[] {
  return (measured.get(name) as Measured).levels;
}

export function answered(measured: Map<string, Measured>, name: string): number {
  return (measured.get(name) as Measured).answered;
}

// Above this share of a core, the load generator may limit the rate.
const BUSY_GENERATOR = 0.9;

function tails(levels: Level[]): string {
  const p99 = levels.map((level) => level.p99.toFixed(1)).join(" · ");
  const spread = levels.map((level) => level.spread.toFixed(0)).join(" · ");
  const busy = Math.max(...levels.map(({ generator }) => generator));
  const warning = busy > BUSY_GENERATOR ? `, load generator at ${(busy * 100).toFixed(0)} %` : "";
  return `p99 ${p99} ms, spread ${spread} %${warning}`;
}

export function machine(): string {
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${memory} GiB, Node ${process.versions.node}, ${type()} ${release()}`;
}

/** Prints the table, and writes it to `BENCH_OUT` if set. */
export function report(rows: Row[]): void {
  const date = new Date().toISOString();
  console.log(`\n${machine()}\n${date}\n`);
  printTable(["", "linkgate", "CPU, µs", "reference", "CPU, µs", "ratio", "target", ""], rows.map(cellsOf));
  const file = process.env.BENCH_OUT;
  if (file) writeFileSync(file, `${JSON.stringify({ machine: machine(), date, rows }, null, 2)}\n`);
}

export function printTable(head: string[], rows: string[][]): void {
  for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
}

function cellsOf({ name, ours, cpu, reference, referenceCpu, ratio, atLeast, atMost, ok, note }: Row) {
  const target = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : "";
  const verdict = ok === undefined ? "" : ok ? "ok" : "MISSED";
  const values = [ours, cpu, reference, referenceCpu, ratio].map(numbers);
  return [name, ...values, target, [verdict, note].filter(Boolean).join(", ")];
}

function numbers(values: number[]): string {
  const format = (value: number) =>
    value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(value >= 20 ? 1 : 2);
  return values.map(format).join(" · ");
}
