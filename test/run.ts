// Runs every test that this machine can run: all of them on SQLite, and on each other database the files that say
// `export const databases = "all";` or `"servers"`.
//
//   node test/run.ts [--rest | --processes | --browser | --clients | --release | --failover | --races] [option…] [file…]
//
// README.md describes the options and variables. --rest runs what `npm test` leaves out or skips on a machine without
// databases and optional programs: on SQLite, the files that say `export const stage = "long";`, and those with a test that
// can be skipped. --fail-fast starts nothing more after a failure. TEST_SOURCES=1 loads the sources instead of a bundle.

import { randomInt } from "node:crypto";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { bundleProduct } from "./runner/bundle.ts";
import { filesAffectedSince } from "./runner/changed.ts";
import { type Engine, filesFor, filesOf, GROUPS } from "./runner/files.ts";
import type { TestResult } from "./runner/report.ts";
import { runSuite } from "./runner/suite.ts";

type Run = { engine: Engine; url?: string | undefined; name: string };

const ROOT = path.join(import.meta.dirname, "..");
// For fewer files, building a bundle takes longer than it saves.
const MANY_FILES = 10;
// In titles of tests, before what is missing: harness/skip.ts.
const SKIPPED = " — SKIPPED: ";

const {
  TEST_CONCURRENCY,
  TEST_DATABASE,
  TEST_POSTGRES_URL,
  TEST_MYSQL_URL,
  TEST_SEED = String(randomInt(2 ** 31)),
  TEST_SOURCES,
} = process.env;
const flag = { type: "boolean", default: false } as const;
const groups = Object.fromEntries(GROUPS.map((group) => [group, flag])) as Record<
  (typeof GROUPS)[number],
  typeof flag
>;
const { values: options, positionals } = parseArgs({
  options: {
    ...groups,
    thorough: flag,
    changed: flag,
    verbose: flag,
    "fail-fast": flag,
    match: { type: "string", multiple: true, default: [] },
    shuffle: { type: "string" },
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
for (const { title } of results) skipped.push(...title.split(SKIPPED).slice(1));
for (const reason of new Set(skipped)) console.log(`SKIPPED ${reason}`);
if (words.length === 0 && !commit && !GROUPS.some((group) => options[group]))
  console.log(`
Not in this run:
  npm run test:processes  tests that start servers and commands as processes
  npm run test:browser    tests that drive Chromium
  npm run test:clients    tests of client libraries and AI clients
  npm run test:release    tests of the package, the image and the release
  npm run test:failover   tests of a database that fails over
  npm run test:races      tests of concurrent requests, with many more rounds`);
process.exit(hasPassed ? 0 : 1);
