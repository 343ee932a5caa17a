// Runs every test that this machine can run: all of them on SQLite, and on each other database the files that say
// `export const databases = "all";`.
//
//   node test/run.ts [--rest | --processes | --browser | --clients | --release | --races] [option…] [file…]
//
// --rest runs what `npm test` leaves out or skips on a machine without databases and optional programs: on SQLite, only the
// files that say `export const stage = "long";`, and those with a test that can be skipped.
// --processes runs only the tests that start servers and commands as processes of their own.
// --browser runs only the tests that drive Chromium, which take minutes of processor time.
// --clients runs only the tests of client libraries and AI clients, programs that Debian and npm install.
// --release runs only the tests of the package, the image and the release, which install packages from npm.
// --races runs only the tests of concurrent requests, with many more rounds.
// --thorough has as many rounds as --races, and checks each page at every width, in light and dark.
// --changed [commit] runs only the files that import what differs from a commit, by default the last one.
// --match=<pattern> runs only the tests whose titles match, as in --match='*revoked*'.
// --shuffle=<seed> runs the files in another order.
// --fail-fast starts nothing more after a failure.
// --results=<file> writes the result of each test as JSON; test/titles.ts compares two such files.
// --verbose writes each test that passes.
//
// TEST_DATABASE limits the run to one database. TEST_SEED repeats the random requests of another run, which printed it.
// TEST_SOURCES=1 loads the sources instead of a bundle of the product.

import { randomInt } from "node:crypto";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { bundleProduct } from "./runner/bundle.ts";
import { filesAffectedSince } from "./runner/changed.ts";
import { type Engine, filesFor, filesOf } from "./runner/files.ts";
import { missingPrograms } from "./runner/missing.ts";
import type { TestResult } from "./runner/report.ts";
import { runSuite } from "./runner/suite.ts";

type Run = { engine: Engine; url?: string | undefined; name: string };

const ROOT = path.join(import.meta.dirname, "..");
// For fewer files, building a bundle takes longer than it saves.
const MANY_FILES = 10;

const {
  TEST_CONCURRENCY,
  TEST_DATABASE,
  TEST_POSTGRES_URL,
  TEST_MYSQL_URL,
  TEST_SEED = String(randomInt(2 ** 31)),
  TEST_SOURCES,
} = process.env;
const { values: options, positionals } = parseArgs({
  options: {
    rest: { type: "boolean", default: false },
    processes: { type: "boolean", default: false },
    browser: { type: "boolean", default: false },
    clients: { type: "boolean", default: false },
    release: { type: "boolean", default: false },
    races: { type: "boolean", default: false },
    thorough: { type: "boolean", default: false },
    changed: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    match: { type: "string", multiple: true, default: [] },
    shuffle: { type: "string" },
    "fail-fast": { type: "boolean", default: false },
    results: { type: "string" },
  },
  allowPositionals: true,
});
const words = [...positionals];
const commit = options.changed ? (words.shift() ?? "HEAD") : undefined;
const allRuns: Run[] = [
  { engine: "sqlite", name: "SQLite" },
  { engine: "postgres", name: "PostgreSQL", url: TEST_POSTGRES_URL },
  { engine: "mysql", name: "MariaDB", url: TEST_MYSQL_URL },
];
const runs = TEST_DATABASE ? allRuns.filter(({ engine }) => engine === TEST_DATABASE) : allRuns;
if (runs.length === 0) throw new Error("TEST_DATABASE must be sqlite, postgres or mysql");

/** Lists the files to run on a database. */
function select({ engine }: Run): string[] {
  if (words.length > 0) return words.flatMap(filesIn);
  const files = filesFor(options, engine);
  if (!commit) return files;
  const affected = filesAffectedSince(ROOT, commit, files);
  console.log(`${affected.length} of ${files.length} files import what differs from ${commit}`);
  return affected;
}

function filesIn(word: string): string[] {
  const isFolder = existsSync(word) && statSync(word).isDirectory();
  return filesOf([isFolder ? `${word}/**/*.test.ts` : word]);
}

async function bundleFor({ length }: string[]): Promise<string | undefined> {
  return TEST_SOURCES ? undefined : bundleProduct({ unlessCached: length < MANY_FILES ? "skip" : "build" });
}

/** Returns how many files run at a time. */
function concurrencyOn(engine: Engine): number {
  const files = TEST_CONCURRENCY ? Number(TEST_CONCURRENCY) : Math.max(2, availableParallelism());
  // Files that start processes wait for them. A cluster opens up to 40 connections, and PostgreSQL allows 100 by default.
  if (!options.processes) return files;
  return engine === "postgres" ? Math.min(files + 1, 2) : files + 1;
}

console.log(`TEST_SEED=${TEST_SEED}`);

const skipped: string[] = [];
const results: TestResult[] = [];
let hasPassed = true;
for (const run of runs) {
  if (run.engine !== "sqlite" && !run.url) {
    skipped.push(`${run.name}: TEST_${run.engine.toUpperCase()}_URL is not set`);
    continue;
  }
  console.log(`\n== ${run.name}`);
  const files = select(run);
  if (files.length === 0) {
    if (words.length > 0) throw new Error(`no test file matches ${words.join(" ")}`);
    console.log("no files");
    continue;
  }
  const started = performance.now();
  const result = await runSuite({
    engine: run.engine,
    files,
    bundle: await bundleFor(files),
    concurrency: concurrencyOn(run.engine),
    isVerbose: options.verbose,
    match: options.match,
    failFast: options["fail-fast"],
    shuffle: options.shuffle,
    environment: { TEST_ROUNDS: options.races || options.thorough ? "many" : "few", TEST_SEED },
  });
  results.push(...result.results);
  hasPassed &&= result.hasPassed;
  console.log(`${run.name}: ${Math.round((performance.now() - started) / 1000)} s`);
}
if (options.results) writeFileSync(options.results, JSON.stringify(results));
for (const reason of [...skipped, ...missingPrograms(options)]) console.log(`SKIPPED ${reason}`);
const { rest, processes, browser, clients, release, races, changed } = options;
const isPart = words.length > 0 || rest || processes || browser || clients || release || races || changed;
if (!isPart)
  console.log(`
Not in this run:
  npm run test:processes  tests that start servers and commands as processes
  npm run test:browser    tests that drive Chromium
  npm run test:clients    tests of client libraries and AI clients
  npm run test:release    tests of the package, the image and the release
  npm run test:races      tests of concurrent requests, with many more rounds`);
process.exit(hasPassed ? 0 : 1);
