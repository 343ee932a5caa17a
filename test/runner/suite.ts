import { spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import type { Engine } from "./files.ts";
import { type Message, WAITS_FOR } from "./messages.ts";
import { createReport, type Durations, type Report, type TestResult } from "./report.ts";
import type { WorkerOptions } from "./worker.ts";

export type Suite = {
  engine: Engine;
  files: string[];
  bundle?: string | undefined;
  concurrency: number;
  isVerbose: boolean;
  /** Patterns that titles of the tests to run match. */
  match: string[];
  /** Starts no more tests after a failure. */
  failFast: boolean;
  /** Runs the files in an order that follows from a seed, instead of the slowest first. */
  shuffle?: string | undefined;
  environment: Record<string, string>;
};

export type Result = { hasPassed: boolean; results: TestResult[] };

const WORKER = new URL("worker.ts", import.meta.url);
const TEMPLATE = path.join(import.meta.dirname, "../harness/database/template.ts");
const CACHE = path.join(import.meta.dirname, "../../node_modules/.cache");
// Every thread loads the whole service: a cache saves most of the compilation.
const COMPILED = path.join(CACHE, "linkgate");
const DURATIONS = path.join(CACHE, "linkgate-tests/durations.json");
// How long a thread may send no message.
const SILENCE_MS = 5 * 60_000;
// How long it has to say what it waits for.
const LAST_WORDS_MS = 2000;
// With V8's default, collecting short-lived objects took a tenth of the processor time.
const HEAP = { maxYoungGenerationSizeMb: 192 };
// Files that move the clock forward share threads, in which it never goes back.
const MOVES_CLOCK = /\b(advanceClock|advanceToNoon|slowClock)\b/;
// Files that compare times with a clock that tests can't move: that of another program or of the database.
const READS_OTHER_CLOCK = /harness\/program\.ts"|clockAhead/;
// Files that replace the clock, change the environment or the process, or measure the process.
const NEEDS_OWN_THREAD = new RegExp(
  [
    /Date\.now =|mock\.\w+\(/,
    /process\.env(\.\w+|\[[^\]]+\]) =|delete process\.env|globalThis\.\w+ =/,
    /process\.(on|chdir|umask)\(|memoryUsage|cpuUsage/,
  ]
    .map(({ source }) => source)
    .join("|"),
);

/** Runs test files in a few threads. */
export async function runSuite(suite: Suite): Promise<Result> {
  const { engine, files, bundle, concurrency, isVerbose, match, failFast, shuffle, environment } = suite;
  const env = { ...process.env, TEST_DATABASE: engine, NODE_COMPILE_CACHE: COMPILED, ...environment };
  const template = await createTemplate(env);
  const report = createReport({ fileCount: files.length, isVerbose });
  const options: WorkerOptions = { compileCache: COMPILED, match, failFast };
  const ofThreads = { ...env, TEST_TEMPLATE: template.url, ...(bundle && { TEST_BUNDLE: bundle }) };
  const interrupt = () => {
    report.interrupt();
    process.exit(1);
  };
  process.once("SIGINT", interrupt);
  const groups = Object.groupBy(inOrder(files, shuffle), isolationOf);
  const queues = Object.entries(groups).map(([isolation, group]) => ({ isolation, queue: group.values() }));
  const work = async () => {
    for (const { isolation, queue } of queues) {
      let thread: Thread | undefined;
      for (const file of queue) {
        if (failFast && report.hasFailed()) break;
        thread ??= startThread(report, options, ofThreads);
        const isUsable = await thread.run(path.resolve(file));
        if (isUsable && isolation !== "own thread") continue;
        await thread.end();
        thread = undefined;
      }
      await thread?.end();
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  process.off("SIGINT", interrupt);
  await template.drop();
  report.finish();
  saveDurations(report.durations);
  return { hasPassed: !report.hasFailed(), results: report.results };
}

/** Returns whether a file gets its own thread, or shares one with files that do or don't move the clock. */
function isolationOf(file: string): "own thread" | "moved clock" | "real clock" {
  const text = readFileSync(file, "utf8");
  if (NEEDS_OWN_THREAD.test(text)) return "own thread";
  if (!MOVES_CLOCK.test(text)) return "real clock";
  return READS_OTHER_CLOCK.test(text) ? "own thread" : "moved clock";
}

/** Puts the slowest files first: a slow file that started last would leave the other processors idle. */
function inOrder(files: string[], seed: string | undefined): string[] {
  const keyOf = (file: string) => hash("sha256", `${seed} ${file}`);
  if (seed !== undefined) return files.toSorted((one, other) => keyOf(one).localeCompare(keyOf(other)));
  const durations = readDurations();
  const durationOf = (file: string) => durations[file] ?? Number.POSITIVE_INFINITY;
  return files.toSorted((one, other) => durationOf(other) - durationOf(one) || one.localeCompare(other));
}

type Thread = ReturnType<typeof startThread>;

function startThread(report: Report, workerData: WorkerOptions, env: NodeJS.ProcessEnv) {
  const worker = new Worker(WORKER, { workerData, env, stdout: true, stderr: true, resourceLimits: HEAP });
  let testFile = "";
  let hear = (_message: Message) => {};
  // Resolves the run of a file to whether the thread can run others.
  let settle: ((isUsable: boolean) => void) | undefined;
  const fail = (type: string, reason = "") => {
    report.receive({ type, testFile, reason });
    settle?.(false);
    settle = undefined;
  };
  // Also while no file runs: what fails as the thread ends belongs to its last file.
  worker.on("error", (error) => fail("ended", String(error.stack)));
  const exited = new Promise<void>((resolve) =>
    worker.once("exit", (code) => {
      if (settle) fail("ended", `the thread ended with ${code}`);
      resolve();
    }),
  );
  worker.on("message", (message: Message) => {
    report.receive(message);
    hear(message);
  });
  let silence: NodeJS.Timeout;
  const giveUp = () => {
    worker.postMessage(WAITS_FOR);
    silence = setTimeout(fail, LAST_WORDS_MS, "silent");
  };
  for (const stream of [worker.stdout, worker.stderr])
    stream.on("data", (chunk) => report.receive({ type: "output", testFile, text: String(chunk) }));

  return {
    /** Runs a file. Resolves to whether the thread can run others. */
    async run(file: string): Promise<boolean> {
      testFile = file;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      settle = resolve;
      silence = setTimeout(giveUp, SILENCE_MS);
      hear = ({ type }) => {
        if (type === "waits") return;
        clearTimeout(silence);
        if (type === "worker-finished") return settle?.(true);
        silence = setTimeout(giveUp, SILENCE_MS);
      };
      worker.postMessage(file);
      const isUsable = await promise;
      settle = undefined;
      clearTimeout(silence);
      return isUsable;
    },

    /** Ends the thread with its hooks for that, unless it doesn't respond. */
    async end(): Promise<void> {
      worker.postMessage(undefined);
      const terminate = setTimeout(() => worker.terminate(), 5000);
      await exited;
      clearTimeout(terminate);
    },
  };
}

async function createTemplate(env: NodeJS.ProcessEnv): Promise<{ url: string; drop(): Promise<void> }> {
  const child = spawn(process.execPath, [TEMPLATE], { stdio: ["pipe", "pipe", "inherit"], env });
  const ended = once(child, "exit");
  const [url] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
  if (!URL.canParse(String(url))) throw new Error("the database to copy could not be created");
  return {
    url,
    async drop() {
      child.stdin.end();
      await ended;
    },
  };
}

const readDurations = (): Durations =>
  existsSync(DURATIONS) ? JSON.parse(readFileSync(DURATIONS, "utf8")) : {};

/** Saves how long the files took: the next run starts the slowest first. */
function saveDurations(durations: Durations): void {
  mkdirSync(path.dirname(DURATIONS), { recursive: true });
  const written = `${DURATIONS}.${process.pid}`;
  writeFileSync(written, JSON.stringify({ ...readDurations(), ...durations }));
  renameSync(written, DURATIONS);
}
