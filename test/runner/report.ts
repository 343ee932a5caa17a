import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { type Failure, type Message, textsOf } from "./messages.ts";
import { toSources } from "./source-positions.ts";

/** Of a test, or of a file that failed as a whole. */
export type TestResult = {
  file: string;
  title: string;
  outcome: "passed" | "failed" | "skipped";
  failure?: Failure | undefined;
};

/** The seconds that each file took, by its path. */
export type Durations = Record<string, number>;

type Running = { started: number; unfinished: Set<string>; output: string; hasFailed: boolean };

/** Writes how a run goes. */
export type Report = ReturnType<typeof createReport>;

const PROGRESS_MS = 10_000;
const SLOWEST = 10;

/** Creates a report. On a terminal, one line shows the progress; elsewhere a line is written every 10 seconds. */
export function createReport({ fileCount, isVerbose }: { fileCount: number; isVerbose: boolean }) {
  const { stdout } = process;
  const running = new Map<string, Running>();
  const results: TestResult[] = [];
  const durations: Durations = {};
  const failures: string[] = [];
  const counts = {
    "test passed": 0,
    "test failed": 0,
    "hook failed": 0,
    "uncaught exception": 0,
    "unhandled rejection": 0,
    "file failed": 0,
    "test skipped": 0,
  };
  const timer = stdout.isTTY ? undefined : setInterval(writeProgress, PROGRESS_MS);

  function writeProgress() {
    const files = `${Object.keys(durations).length} of ${fileCount} files`;
    const passed = counts["test passed"].toLocaleString("en-US");
    const line = `${files}, ${passed} tests passed, ${failures.length} failed`;
    if (stdout.isTTY) stdout.write(`\r\u001b[K${line}`);
    else console.log(line);
  }

  function write(text: string) {
    if (stdout.isTTY) stdout.write("\r\u001b[K");
    console.log(text);
    if (stdout.isTTY) writeProgress();
  }

  function count(what: keyof typeof counts, outcome: TestResult["outcome"], message: Message) {
    const { testFile = "", title = what, error } = message;
    counts[what]++;
    results.push({ file: relative(testFile), title, outcome, failure: error });
  }

  function fail(what: keyof typeof counts, message: Message) {
    const { testFile = "", title = what, error, stack, logs = [] } = message;
    count(what, "failed", message);
    const file = running.get(testFile);
    if (file) file.hasFailed = true;
    const heading = `✘ ${relative(testFile)}${error?.source ? `:${error.source.line}` : ""} › ${title}`;
    failures.push(heading);
    const text = [...describe(error), ...(stack ? [stack] : []), ...logs.map((log) => `log: ${log}`)];
    write(`\n  ${heading}\n${indent(toSources(text.join("\n\n")), 4)}\n`);
  }

  function endFile(testFile: string) {
    const file = running.get(testFile);
    if (!file) return;
    durations[relative(testFile)] = (performance.now() - file.started) / 1000;
    const title = `did not finish: ${[...file.unfinished].join("; ")}`;
    if (file.unfinished.size > 0) fail("file failed", { type: "ended", testFile, title });
    // What a file without a failure wrote would only be in the way.
    if (file.output && (isVerbose || file.hasFailed))
      write(`  Output of ${relative(testFile)}:\n${indent(toSources(file.output.trimEnd()), 4)}\n`);
    running.delete(testFile);
    if (stdout.isTTY) writeProgress();
  }

  function receive(message: Message): void {
    const { type, testFile = "", title = "", skip, text = "" } = message;
    const file = running.get(testFile);
    const crash = crashOf(message);
    if (crash) fail("file failed", { ...message, title: crash });
    switch (type) {
      case "starting":
        running.set(testFile, {
          started: performance.now(),
          unfinished: new Set(),
          output: "",
          hasFailed: false,
        });
        break;
      case "selected-test":
        if (skip) count("test skipped", "skipped", message);
        else file?.unfinished.add(title);
        break;
      case "test-passed":
        file?.unfinished.delete(title);
        count("test passed", "passed", message);
        if (isVerbose) write(`  ✔ ${relative(testFile)} › ${title}`);
        break;
      case "test-failed":
        file?.unfinished.delete(title);
        fail("test failed", message);
        break;
      case "hook-failed":
        fail("hook failed", message);
        break;
      case "uncaught-exception":
      case "unhandled-rejection":
        fail(type === "uncaught-exception" ? "uncaught exception" : "unhandled rejection", message);
        break;
      case "output":
      case "waits":
        if (file) file.output += text;
        break;
      case "silent":
      case "ended":
      case "worker-finished":
        endFile(testFile);
    }
  }

  function finish(): void {
    clearInterval(timer);
    if (stdout.isTTY) stdout.write("\r\u001b[K");
    const slowest = Object.entries(durations).toSorted(([, one], [, other]) => other - one);
    if (slowest.length > 1) {
      console.log("\nSlowest files, in seconds:");
      for (const [file, seconds] of slowest.slice(0, SLOWEST))
        console.log(`${seconds.toFixed(1).padStart(8)}  ${file}`);
    }
    if (failures.length > 0) console.log(`\n${failures.map((heading) => `  ${heading}`).join("\n")}`);
    console.log("");
    for (const [what, number] of Object.entries(counts).filter(([, number]) => number > 0))
      console.log(
        `  ${number} ${number === 1 ? what : what.replace(/test|hook|file|exception|rejection/, "$&s")}`,
      );
  }

  return {
    /** Those of tests that were skipped are listed, too. */
    results,
    durations,
    hasFailed: () => failures.length > 0,
    receive,
    finish,
    interrupt() {
      for (const testFile of running.keys()) endFile(testFile);
      finish();
    },
  };
}

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
  const { stack = "", errors = [] } = failure;
  const calls = stack
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !/node:|node_modules\/ava\//.test(line));
  const own = [...textsOf(failure).map(stripVTControlCharacters), calls.join("\n")];
  return [...own, ...errors.flatMap(describe)].filter(Boolean);
}

const relative = (file: string) => path.relative(process.cwd(), file);

const indent = (text: string, width: number) => text.replace(/^/gm, " ".repeat(width));
