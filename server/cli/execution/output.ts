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
