import { writeSync } from "node:fs";
import type { Settings } from "./settings/config.ts";
import { toLogLine } from "./terminal/log-lines.ts";
import { codeOf, pause, STDERR, STDOUT, writeOut } from "./terminal/write-out.ts";

/** The lines that this process could not write. `error` is the system's code, while it can't write more. */
export type LogLoss = { lines: number; error?: string };

export type LogOutput = ReturnType<typeof createLogOutput>;

/** A report stands for lines that are lost already. */
type Entry = { bytes: Buffer; reported: number };

const RETRY_MS = 1000;
// By how much the reader of a pipe may fall behind before lines are lost.
const MAX_WAITING_BYTES = 1_000_000;
// For the reader of a pipe to take the last lines.
const EXIT_MS = 1000;

/** Returns whether the log consists of lines for people, as it does on a terminal. */
export function isText(format: Settings["LOG_FORMAT"]): boolean {
  // Opening `process.stdout` also keeps a full pipe from blocking the process: writes fail with EAGAIN instead.
  const isTerminal = process.stdout.isTTY === true;
  return format === "auto" ? isTerminal : format === "text";
}

/**
 * Writes lines of JSON, or what people read instead, to stdout. A full disk, a closed pipe, a slow reader or a terminal
 * that is gone never stops the process: lines are lost and counted, and reported once it can write again.
 */
export function createLogOutput(format: Settings["LOG_FORMAT"] = "json") {
  const shown = isText(format) ? toLogLine : (line: string) => line;
  let waiting: Entry[] = [];
  let waitingBytes = 0;
  /** How many bytes of the first one are written. */
  let offset = 0;
  let lost = 0;
  let unreported = 0;
  /** Whether the output ends within a line, the rest of which is lost. */
  let isCut = false;
  let error: string | undefined;
  let retry: NodeJS.Timeout | undefined;

  function print(text: string) {
    const bytes = Buffer.from(text);
    if (waitingBytes + bytes.length > MAX_WAITING_BYTES) return lose(1, "EAGAIN");
    waiting.push({ bytes, reported: 0 });
    waitingBytes += bytes.length;
    flush();
  }

  function flush() {
    try {
      if (unreported > 0 && offset === 0) addReport();
      while (waiting.length > 0) writeFirst(waiting[0] as Entry);
      error = undefined;
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code !== "EAGAIN") loseWaiting(code);
      flushLater();
    }
  }

  function writeFirst({ bytes }: Entry) {
    while (offset < bytes.length) offset += writeSync(STDOUT, bytes, offset);
    waiting.shift();
    waitingBytes -= bytes.length;
    offset = 0;
    isCut = false;
  }

  function addReport() {
    const time = new Date().toISOString();
    const report = { level: "warn", time, lost_lines: unreported, msg: "lines of this log are lost" };
    const line = shown(`${JSON.stringify(report)}\n`);
    const bytes = Buffer.from(isCut ? `\n${line}` : line);
    waiting.unshift({ bytes, reported: unreported });
    waitingBytes += bytes.length;
    unreported = 0;
  }

  function loseWaiting(code: string) {
    isCut ||= offset > 0;
    offset = 0;
    const lines = waiting.filter(({ reported }) => reported === 0).length;
    for (const { reported } of waiting) unreported += reported;
    waiting = [];
    waitingBytes = 0;
    lose(lines, code);
  }

  function lose(lines: number, code: string) {
    lost += lines;
    unreported += lines;
    if (error === undefined) warn(code);
    error = code;
  }

  function flushLater() {
    if (retry === undefined) process.once("exit", finish);
    clearTimeout(retry);
    retry = setTimeout(flush, RETRY_MS).unref();
  }

  function finish() {
    const end = performance.now() + EXIT_MS;
    for (flush(); waiting.length > 0 && performance.now() < end; flush()) pause();
  }

  return {
    /** Writes a line of JSON in the format of the log. */
    write: (line: string) => print(shown(line)),
    /** Writes text as it is. */
    print,
    loss: (): LogLoss => ({ lines: lost, ...(error !== undefined && { error }) }),
  };
}

/** On stderr, which may be elsewhere. */
function warn(code: string): void {
  try {
    const metric = "linkgate_log_lines_lost_total";
    writeOut(STDERR, `The log can't be written (${code}). The metric ${metric} counts lost lines.\n`, 0);
  } catch {
    // The metric and /readyz still report it.
  }
}
