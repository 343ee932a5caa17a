import { STDERR, STDOUT, UnwritableOutput, writeOut } from "../../terminal/write-out.ts";
import { CommandError } from "./command.ts";

// The transaction of a change waits for the reader of its secret.
const SECRET_MS = 5000;

/** Prints to stdout. Ends the process if it can't, quietly after a reader such as `head` has closed its pipe. */
export function print(text: string, remark = ""): void {
  try {
    writeOut(STDOUT, text);
  } catch (error) {
    const { code } = error as UnwritableOutput;
    if (code === "EPIPE") process.exit();
    reportError(`${sentenceOf(code)}${remark}`, process.argv.includes("--json") && "output_failed");
    process.exit(1);
  }
}

/** Throws CommandError `output_failed`, also for a closed pipe: the secret would be lost. */
export function printSecret(text: string): void {
  try {
    writeOut(STDOUT, text, SECRET_MS);
  } catch (error) {
    if (!(error instanceof UnwritableOutput)) throw error;
    throw new CommandError("output_failed", `${sentenceOf(error.code)} Nothing was changed.`);
  }
}

/** Prints an error to stderr: as JSON if it has a code. */
export function reportError(message: string, code: string | false): void {
  try {
    writeOut(STDERR, `${code === false ? message : JSON.stringify({ error: { code, message } })}\n`);
  } catch {
    // The exit code remains.
  }
}

function sentenceOf(code: string): string {
  return `The result can't be written (${code}).`;
}

/** Returns a result for people: a line for each value, and a table for a list of flat objects. */
export function toLines(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, item]) => {
    if (item === null || item === undefined) return [`${indent}${name}: -`];
    if (typeof item !== "object") return [`${indent}${Array.isArray(value) ? "-" : `${name}:`} ${item}`];
    const inner = toTable(item, `${indent}  `) ?? toLines(item, `${indent}  `);
    return Array.isArray(value)
      ? [`${indent}-`, ...inner]
      : [`${indent}${name}:${inner.length ? "" : " none"}`, ...inner];
  });
}

/** Returns nothing for other values, and for a table that is too wide for the terminal. */
function toTable(value: object, indent: string): string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isFlat)) return undefined;
  const names = [...new Set(value.flatMap((entry) => Object.keys(entry)))];
  const lines = align([names, ...value.map((entry) => names.map((name) => String(entry[name] ?? "-")))]);
  const { columns = Number.POSITIVE_INFINITY } = process.stdout;
  return lines.every(({ length }) => indent.length + length <= columns)
    ? lines.map((line) => indent + line)
    : undefined;
}

function isFlat(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((item) => item === null || typeof item !== "object")
  );
}

/** Pads the cells of each column but the last to the same width. */
export function align(rows: string[][]): string[] {
  const widths = rows[0]?.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}
