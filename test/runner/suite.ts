import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import type { Engine } from "./files.ts";
import { createReport, type Durations, type Message } from "./report.ts";

/** How to run files on a database. */
export type Suite = {
  engine: Engine;
  files: string[];
  /** Options of ava. With `--tap`, ava writes the report. */
  avaOptions: string[];
  /** The map of a bundle. */
  bundle?: string | undefined;
  concurrency?: number | undefined;
  isVerbose: boolean;
  environment: Record<string, string>;
};

export type Result = { hasPassed: boolean; titles: string[] };

const AVA = path.join(path.dirname(createRequire(import.meta.url).resolve("ava")), "cli.js");
const CONFIG = path.join(import.meta.dirname, "ava.config.js");
const TEMPLATE = path.join(import.meta.dirname, "../harness/database/template.ts");
const CACHE = path.join(import.meta.dirname, "../../node_modules/.cache");
// Every test file loads the whole service: a cache saves most of the compilation.
const COMPILED = path.join(CACHE, "linkgate");
const DURATIONS = path.join(CACHE, "linkgate-tests/durations.json");
// Far longer than any run. A run that hangs is interrupted, and the tests that did not finish are listed.
const LIMIT_MS = 60 * 60_000;

/** Runs ava once. */
export async function runSuite(suite: Suite): Promise<Result> {
  const { engine, files, avaOptions, bundle, concurrency, isVerbose, environment } = suite;
  const env = { ...process.env, TEST_DATABASE: engine, NODE_COMPILE_CACHE: COMPILED, ...environment };
  const template = await createTemplate(env);
  const isTap = avaOptions.includes("--tap");
  const child = spawn(process.execPath, [AVA, "--config", CONFIG, ...avaOptions, ...files], {
    stdio: isTap ? "inherit" : ["ignore", "pipe", "pipe", "ipc"],
    timeout: LIMIT_MS,
    killSignal: "SIGINT",
    env: {
      ...env,
      TEST_TEMPLATE: template.url,
      ...(bundle && { TEST_BUNDLE: bundle }),
      ...(concurrency && { TEST_CONCURRENCY: String(concurrency) }),
      ...(existsSync(DURATIONS) && { TEST_DURATIONS: DURATIONS }),
    },
  });
  const ended = once(child, "close");
  const report = isTap ? undefined : createReport({ fileCount: files.length, isVerbose });
  child.on("message", (message) => report?.receive(message as Message));
  const output = await Promise.all([child.stdout?.toArray(), child.stderr?.toArray()]);
  const [code] = await ended;
  await template.drop();
  // ava failed before the tests, or was interrupted.
  if (report && !report.isComplete) console.log(output.flat().join(""));
  report?.finish();
  if (report) saveDurations(report.durations);
  return { hasPassed: code === 0, titles: report?.titles ?? [] };
}

/** Migrates a database that test files copy. */
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

/** Saves how long the files took: the next run starts the slowest first. */
function saveDurations(durations: Durations): void {
  const earlier = existsSync(DURATIONS) ? JSON.parse(readFileSync(DURATIONS, "utf8")) : {};
  mkdirSync(path.dirname(DURATIONS), { recursive: true });
  const written = `${DURATIONS}.${process.pid}`;
  writeFileSync(written, JSON.stringify({ ...earlier, ...durations }));
  renameSync(written, DURATIONS);
}
