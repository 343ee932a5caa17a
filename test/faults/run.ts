// Checks that the tests are strong: each patch in this folder breaks the product in one place, and a test must fail.
//
//   npm run test:faults [-- name…]
//
// Copies of the checkout are changed, never the checkout itself. The tests run on SQLite. Exits with 1 if a fault
// survives, or if its patch no longer applies.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { type Report, readResults } from "../runner/results.ts";
import { type Fault, InvalidFault, readFaults, type Stage } from "./faults.ts";
import { type Copy, createWorkspace } from "./workspace.ts";

// Each run has a processor of its own on a machine with two.
const COPIES = 2;

type Outcome = { result: "killed" | "survived" | "stale"; detail: string };
type Run = { stage: Stage; files: string[]; options?: string[] };

const faults = readOrExit(process.argv.slice(2));
const workspace = createWorkspace(Math.min(COPIES, faults.length));
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const { pid } of running) if (pid) process.kill(-pid, "SIGKILL");
  workspace.remove();
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

function readOrExit(names: string[]): Fault[] {
  try {
    return readFaults(names);
  } catch (error) {
    if (!(error instanceof InvalidFault)) throw error;
    console.error(error.message);
    return process.exit(1);
  }
}

/** Runs test files in a copy. */
async function runTests({ folder }: Copy, { stage, files, options = [] }: Run): Promise<Report> {
  const { TEST_POSTGRES_URL, TEST_MYSQL_URL, TEST_REDIS_URL, ...inherited } = process.env;
  const env = { ...inherited, TEST_DATABASE: "sqlite", TMPDIR: workspace.temporary };
  const stageOption = stage === "processes" ? ["--processes"] : [];
  const results = path.join(folder, "test-results.json");
  const args = ["test/run.ts", ...stageOption, `--results=${results}`, ...options, ...files];
  // A process group of its own, so everything that a run has started can be ended.
  const child = spawn(process.execPath, args, { cwd: folder, env, detached: true, stdio: "ignore" });
  running.add(child);
  await once(child, "close");
  running.delete(child);
  return readResults(results);
}

/** Runs all test files without a fault. Resolves to the titles of their tests, or exits if one fails. */
async function runWithoutFault(copy: Copy): Promise<string[]> {
  const titles: string[] = [];
  for (const [stage, ofStage] of Map.groupBy(faults, (fault) => fault.stage)) {
    const files = [...new Set(ofStage.flatMap(({ killedBy }) => killedBy))].sort();
    const started = performance.now();
    const { passed, failed } = await runTests(copy, { stage, files });
    if (failed.length > 0 || passed.length === 0) {
      for (const { title } of failed) console.log(`failed    ${title}`);
      console.log("\nThe tests must pass without a fault.");
      process.exit(1);
    }
    console.log(
      `Without a fault, ${count(passed, "test")} in ${count(files, "file")} pass (${since(started)}).`,
    );
    titles.push(...passed);
  }
  console.log();
  return titles;
}

/** Applies a fault and runs the tests that must notice it. */
async function tryFault(copy: Copy, { patch, killedBy, stage }: Fault, titles: string[]): Promise<Outcome> {
  const reason = copy.apply(patch);
  if (reason !== undefined) return { result: "stale", detail: reason };
  const { passed, failed } = await runTests(copy, { stage, files: killedBy, options: ["--fail-fast"] });
  copy.restore();
  // A crash has no test's title.
  const killer = failed.find((one) => one.isDecided && titles.includes(one.title));
  if (killer) return { result: "killed", detail: `"${killer.title}"` };
  const [crash] = failed;
  const detail = crash
    ? `crashed: ${crash.title}`
    : `${count(passed, "test")} passed in ${killedBy.join(", ")}`;
  return { result: "survived", detail };
}

/** Tries the faults one after the other in a copy. Resolves to how many were killed. */
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

function count({ length }: unknown[], noun: string): string {
  return `${length} ${noun}${length === 1 ? "" : "s"}`;
}

function since(started: number): string {
  return `${((performance.now() - started) / 1000).toFixed(1)} s`;
}

const width = Math.max(...faults.map(({ name }) => name.length));
const titles = await runWithoutFault(workspace.copies[0] as Copy);
const waiting = faults.values();
const counts = await Promise.all(workspace.copies.map((copy) => tryNext(copy, waiting, titles)));
const killed = counts.reduce((sum, count) => sum + count, 0);
console.log(`\n${killed} of ${faults.length} faults killed`);
process.exit(killed === faults.length ? 0 : 1);
