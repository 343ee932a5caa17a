import { writeSync } from "node:fs";

export const STDOUT = 1;
export const STDERR = 2;

const PAUSE_MS = 10;

/** Says why text could not be written to a file descriptor. `code` is that of the system. */
export class UnwritableOutput extends Error {
  override readonly name = "UnwritableOutput";
  readonly code: string;
  constructor(cause: unknown) {
    super("the output can't be written", { cause });
    this.code = codeOf(cause);
  }
}

/**
 * Writes all of the text, which neither the console nor `process.stdout` promise. Waits while a pipe is full, up to
 * `limitMs`. Throws UnwritableOutput.
 */
export function writeOut(descriptor: number, text: string, limitMs = Number.POSITIVE_INFINITY): void {
  const bytes = Buffer.from(text);
  const end = performance.now() + limitMs;
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      if (codeOf(error) !== "EAGAIN" || performance.now() > end) throw new UnwritableOutput(error);
      pause();
    }
  }
}

/** Blocks the process, like a write to a full pipe. */
export function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

export function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code);
}
