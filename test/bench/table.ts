import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";

/** One row of the result. Rates are per second, times in milliseconds. `ok` is set if the row has a target. */
export type Row = {
  name: string;
  ours: number;
  reference?: number;
  /** ours / reference, or the inverse if less is better. */
  ratio?: number;
  at_least?: number;
  at_most?: number;
  ok?: boolean;
  note?: string;
};

/** Returns a row with a comparison. `atLeast` is the target ratio. */
export function compare(name: string, ours: number, reference: number, atLeast?: number, note?: string): Row {
  const ratio = ours / reference;
  return {
    name,
    ours,
    reference,
    ratio,
    ...(atLeast !== undefined && { at_least: atLeast, ok: ratio >= atLeast }),
    ...(note && { note }),
  };
}

/** Describes the machine in one line. */
export function machine(): string {
  const [cpu] = cpus();
  return `${cpu?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.versions.node}, ${commandLine("uname", ["-sr"])}`;
}

/** Prints the table, and writes it to `BENCH_OUT` if set. */
export function report(rows: Row[]): void {
  const date = new Date().toISOString();
  const number = (value: number | undefined) =>
    value === undefined ? "" : value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
  const target = ({ at_least, at_most }: Row) =>
    at_least !== undefined ? `≥ ${at_least}` : at_most !== undefined ? `≤ ${at_most}` : "";
  console.log(`\n${machine()}\n${date}\n`);
  console.log("| | linkgate | reference | ratio | target | |\n|---|---|---|---|---|---|");
  for (const row of rows) {
    const verdict = row.ok === undefined ? "" : row.ok ? "ok" : "MISSED";
    const cells = [
      row.name,
      number(row.ours),
      number(row.reference),
      row.ratio?.toFixed(2) ?? "",
      target(row),
    ];
    console.log(`| ${cells.join(" | ")} | ${[verdict, row.note].filter(Boolean).join(", ")} |`);
  }
  const file = process.env.BENCH_OUT;
  if (file) writeFileSync(file, `${JSON.stringify({ machine: machine(), date, rows }, null, 2)}\n`);
}

function commandLine(command: string, args: string[]): string {
  try {
    return execFileSync(command, args, { encoding: "utf8" }).trim();
  } catch {
    return process.platform;
  }
}
