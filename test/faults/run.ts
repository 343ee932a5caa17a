// Checks that the tests are strong: each patch in this folder breaks the product in one place, and a test must fail.
//
//   npm run test:faults [-- name…]
//
// Copies of the checkout are changed, never the checkout itself. The tests run on SQLite, or on the database that the patch
// names. Exits with 1 if a fault survives, or if its patch no longer applies.

import path from "node:path";
import { Program, temporaryFolder } from "../harness/program.ts";
import { type Report, readResults } from "../runner/results.ts";
import { type Fault, readFaults } from "./faults.ts";
import { type Copy, createCopy } from "./workspace.ts";

// Each run has a processor of its own on a machine with two.
const COPIES = 2;

type Outcome = { result: "killed" | "survived" | "stale"; detail: string };
type Run = Pick<Fault, "stage" | "database"> & { files: string[]; options?: string[] };

const faults = readFaults(process.argv.slice(2));
// The folder is removed, and what runs in it is killed, when this process ends.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));
const temporary = temporaryFolder("faults");
const copies = Array.from({ length: Math.min(COPIES, faults.length) }, (_, index) =>
  createCopy(path.join(temporary, `copy-${index + 1}`)),
);

async function runTests({ folder }: Copy, { stage, database, files, options = [] }: Run): Promise<Report> {
  const env = { ...process.env, TEST_DATABASE: database, TMPDIR: temporary } as Record<string, string>;
  const stageOption = stage === "processes" ? ["--processes"] : [];
  const results = path.join(folder, "test-results.json");
  const args = ["test/run.ts", ...stageOption, `--results=${results}`, ...options, ...files];
  await new Program(process.execPath, args, { cwd: folder, settings: env }).ended;
  return readResults(results);
}

async function runWithoutFault(copy: Copy): Promise<string[]> {
  const titles: string[] = [];
  const groups = Object.values(Object.groupBy(faults, ({ stage, database }) => `${stage} ${database}`));
  for (const group of groups as [Fault, ...Fault[]][]) {
    const files = [...new Set(group.flatMap(({ killedBy }) => killedBy))].sort();
    const started = performance.now();
    const { passed, failed } = await runTests(copy, { ...group[0], files });
    if (failed.length > 0 || passed.length === 0) {
      for (const { title } of failed) console.log(`failed    ${title}`);
      console.log("\nThe tests must pass without a fault.");
      process.exit(1);
    }
    const tests = `${passed.length} tests in ${files.length} files`;
    console.log(`Without a fault, ${tests} pass on ${group[0].database} (${since(started)}).`);
    titles.push(...passed);
  }
  console.log();
  return titles;
}

async function tryFault(copy: Copy, fault: Fault, titles: string[]): Promise<Outcome> {
  const { patch, killedBy } = fault;
  const reason = copy.apply(patch);
  if (reason !== undefined) return { result: "stale", detail: reason };
  const { passed, failed } = await runTests(copy, { ...fault, files: killedBy, options: ["--fail-fast"] });
  copy.revert(patch);
  // A crash has no test's title.
  const killer = failed.find((one) => one.isDecided && titles.includes(one.title));
  if (killer) return { result: "killed", detail: `"${killer.title}"` };
  const [crash] = failed;
  const passes = `${passed.length} tests passed in ${killedBy.join(", ")}`;
  return { result: "survived", detail: crash ? `crashed: ${crash.title}` : passes };
}

async function tryNext(copy: Copy, waiting: Iterator<Fault>, titles: string[]): Promise<number> {
  let killed = 0;
  for (let next = waiting.next(); !next.done; next = waiting.next()) {
    const started = performance.now();
    const { result, detail } = await tryFault(copy, next.value, titles);
    const time = since(started).padStart(6);
    console.log(`${result.padEnd(8)}  ${next.value.name.padEnd(width)}  ${time}  ${detail}`);
    if (result === "survived") console.log(`${" ".repeat(10)}${next.value.breaks}`);
    if (result === "killed") killed++;
  }
  return killed;
}

const since = (started: number) => `${((performance.now() - started) / 1000).toFixed(1)} s`;
const width = Math.max(...faults.map(({ name }) => name.length));
const titles = await runWithoutFault(copies[0] as Copy);
const waiting = faults.values();
const counts = await Promise.all(copies.map((copy) => tryNext(copy, waiting, titles)));
const killed = counts.reduce((sum, count) => sum + count, 0);
console.log(`\n${killed} of ${faults.length} faults killed`);
process.exit(killed === faults.length ? 0 : 1);
