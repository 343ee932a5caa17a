import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import type { Failure, Message } from "./messages.ts";
import { toSources } from "./source-positions.ts";

/** Of a test, or of a file that failed as a whole. */
export type TestResult = {
  file: string;
  title: string;
  outcome: "passed" | "failed" | "skipped";
  failure?: Failure | undefined;
};

type Options = { fileCount: number; isVerbose: boolean };

/** The seconds that each file took, by its path. */
export type Durations = Record<string, number>;

/** Writes how a run goes. */
export type Report = {
  receive(message: Message): void;
  /** Writes the summary. */
  finish(): void;
  /** Lists what did not finish, and writes the summary. */
  interrupt(): void;
  /** Those of tests that were skipped are listed, too. */
  results: TestResult[];
  durations: Durations;
  readonly hasFailed: boolean;
};

const PROGRESS_MS = 10_000;
const SLOWEST = 10;
// The last message about a file that did not end by itself.
const ENDS = new Set(["silent", "ended"]);
const EVERY_LINE = /^/gm;

/** Creates a report. On a terminal, one line shows the progress; elsewhere a line is written every 10 seconds. */
export function createReport({ fileCount, isVerbose }: Options): Report {
  const { stdout } = process;
  const startedAt = new Map<string, number>();
  const remaining = new Map<string, Set<string>>();
  const outputs = new Map<string, string>();
  const failed = new Set<string>();
  const counts = {
    files: 0,
    passed: 0,
    failed: 0,
    hooks: 0,
    skipped: 0,
    exceptions: 0,
    rejections: 0,
    crashes: 0,
  };
  const failures: string[] = [];
  const report: Report = {
    receive,
    finish,
    interrupt,
    results: [],
    durations: {},
    get hasFailed() {
      return failures.length > 0;
    },
  };
  const timer = stdout.isTTY ? undefined : setInterval(writeProgress, PROGRESS_MS);

  function writeProgress() {
    const number = (count: number) => count.toLocaleString("en-US");
    const failed = counts.failed + counts.hooks + counts.exceptions + counts.rejections + counts.crashes;
    const line = `${counts.files} of ${fileCount} files, ${number(counts.passed)} tests passed, ${failed} failed`;
    if (stdout.isTTY) stdout.write(`\r\u001b[K${line}`);
    else console.log(line);
  }

  function write(text: string) {
    if (stdout.isTTY) stdout.write("\r\u001b[K");
    console.log(text);
    if (stdout.isTTY) writeProgress();
  }

  function fail(title: string, { testFile = "", error, stack, logs = [] }: Message) {
    const position = error?.line ? `:${error.line}` : "";
    const heading = `✘ ${relative(testFile)}${position} › ${title}`;
    failures.push(heading);
    report.results.push({ file: relative(testFile), title, outcome: "failed", failure: error });
    failed.add(testFile);
    const text = [...describe(error), ...(stack ? [stack] : []), ...logs.map((log) => `log: ${log}`)];
    write(`\n  ${heading}\n${indent(toSources(text.join("\n\n")), 4)}\n`);
  }

  function keepOutput({ testFile = "", text = "" }: Message) {
    outputs.set(testFile, (outputs.get(testFile) ?? "") + text);
  }

  /** Writes what a file with a failure wrote itself; of others, that would only be in the way. */
  function writeOutput(testFile: string) {
    const text = outputs.get(testFile);
    outputs.delete(testFile);
    if (!text || !(isVerbose || failed.has(testFile))) return;
    write(`  Output of ${relative(testFile)}:\n${indent(toSources(text.trimEnd()), 4)}\n`);
  }

  function settle({ testFile = "", title = "" }: Message, outcome: TestResult["outcome"]) {
    report.results.push({ file: relative(testFile), title, outcome });
  }

  function endFile({ testFile = "", type }: Message) {
    const started = startedAt.get(testFile);
    if (started === undefined) return;
    startedAt.delete(testFile);
    counts.files++;
    report.durations[relative(testFile)] = (performance.now() - started) / 1000;
    const titles = [...(remaining.get(testFile) ?? [])];
    if (titles.length > 0) {
      counts.crashes++;
      fail(`did not finish: ${titles.join("; ")}`, { type, testFile });
    }
    writeOutput(testFile);
    if (stdout.isTTY) writeProgress();
  }

  const handlers: Record<string, (message: Message) => void> = {
    starting({ testFile = "" }) {
      startedAt.set(testFile, performance.now());
      remaining.set(testFile, new Set());
    },
    "selected-test"(message) {
      const { testFile = "", title = "", skip } = message;
      if (!skip) return void remaining.get(testFile)?.add(title);
      counts.skipped++;
      settle(message, "skipped");
    },
    "test-passed"(message) {
      const { testFile = "", title = "" } = message;
      counts.passed++;
      remaining.get(testFile)?.delete(title);
      settle(message, "passed");
      if (isVerbose) write(`  ✔ ${relative(testFile)} › ${title}`);
    },
    "test-failed"(message) {
      counts.failed++;
      remaining.get(message.testFile ?? "")?.delete(message.title ?? "");
      fail(message.title ?? "", message);
    },
    "hook-failed"(message) {
      counts.hooks++;
      fail(message.title ?? "", message);
    },
    "uncaught-exception"(message) {
      counts.exceptions++;
      fail("uncaught exception", message);
    },
    "unhandled-rejection"(message) {
      counts.rejections++;
      fail("unhandled rejection", message);
    },
    output: keepOutput,
    "worker-finished": endFile,
  };

  function receive(message: Message): void {
    handlers[message.type]?.(message);
    const crash = crashOf(message);
    if (!crash) return;
    counts.crashes++;
    fail(crash, message);
    if (ENDS.has(message.type)) endFile(message);
  }

  function interrupt() {
    for (const testFile of startedAt.keys()) endFile({ type: "interrupt", testFile });
    finish();
  }

  function finish(): void {
    clearInterval(timer);
    if (stdout.isTTY) stdout.write("\r\u001b[K");
    const slowest = Object.entries(report.durations).toSorted(([, one], [, other]) => other - one);
    if (slowest.length > 1) {
      console.log("\nSlowest files, in seconds:");
      for (const [file, seconds] of slowest.slice(0, SLOWEST)) {
        console.log(`${seconds.toFixed(1).padStart(8)}  ${file}`);
      }
    }
    if (failures.length > 0) console.log(`\n${failures.map((heading) => `  ${heading}`).join("\n")}`);
    console.log("");
    for (const [count, one, many] of summary()) {
      if (count > 0) console.log(`  ${count} ${count === 1 ? one : many}`);
    }
  }

  function summary(): [number, string, string][] {
    return [
      [counts.passed, "test passed", "tests passed"],
      [counts.failed, "test failed", "tests failed"],
      [counts.hooks, "hook failed", "hooks failed"],
      [counts.exceptions, "uncaught exception", "uncaught exceptions"],
      [counts.rejections, "unhandled rejection", "unhandled rejections"],
      [counts.crashes, "file failed", "files failed"],
      [counts.skipped, "test skipped", "tests skipped"],
    ];
  }

  return report;
}

/** Returns what went wrong with a file as a whole. */
function crashOf({ type, reason = "" }: Message): string | undefined {
  return {
    silent: "nothing has happened for minutes",
    ended: `ended: ${reason}`,
    "process-exit": "called process.exit()",
    "no-tests": "declares no tests",
  }[type];
}

function describe(failure: Failure | undefined): string[] {
  if (!failure) return [];
  const { message, details, stack = "", errors = [] } = failure;
  const calls = stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !/node:|node_modules\/ava\//.test(line));
  return [
    message ?? "",
    ...details.map(stripVTControlCharacters),
    calls.join("\n"),
    ...errors.flatMap(describe),
  ].filter(Boolean);
}

const relative = (file: string) => path.relative(process.cwd(), file);

const indent = (text: string, width: number) => text.replace(EVERY_LINE, " ".repeat(width));
