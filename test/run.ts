import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

// Every test that this machine can run: all of them on SQLite, those that a database decides again on each other one.
const AVA = path.join(path.dirname(createRequire(import.meta.url).resolve("ava")), "cli.js");
const ON_EVERY_DATABASE = ["test/*.test.ts", "test/{adapters,oauth,processes,resources}/**/*.test.ts"];
const CHROMIUM = "/usr/bin/chromium";

type Run = { engine: "sqlite" | "postgres" | "mysql"; address?: string; name: string };

const runs: Run[] = [
  { engine: "sqlite", name: "SQLite" },
  { engine: "postgres", name: "PostgreSQL", ...address("TEST_POSTGRES_URL") },
  { engine: "mysql", name: "MariaDB", ...address("TEST_MYSQL_URL") },
];

function address(variable: string): { address?: string } {
  const value = process.env[variable];
  return value ? { address: value } : {};
}

/** One run of ava; resolves to whether everything passed. */
async function runTests({ engine, name }: Run, files: string[]): Promise<boolean> {
  console.log(`\n== ${name}`);
  const child = spawn(process.execPath, [AVA, ...files], {
    stdio: "inherit",
    env: { ...process.env, TEST_DATABASE: engine },
  });
  const [code] = await once(child, "exit");
  return code === 0;
}

const chosen = process.argv.slice(2);
const skipped: string[] = [];
let passed = true;
for (const run of runs) {
  if (run.engine !== "sqlite" && !run.address) {
    skipped.push(`${run.name}: set TEST_${run.engine.toUpperCase()}_URL to the address of a server`);
    continue;
  }
  const files = chosen.length > 0 ? chosen : run.engine === "sqlite" ? [] : ON_EVERY_DATABASE;
  passed = (await runTests(run, files)) && passed;
}
if (!existsSync(CHROMIUM)) skipped.push(`browser tests: there is no ${CHROMIUM}`);
for (const reason of skipped) console.log(`SKIPPED ${reason}`);
process.exit(passed ? 0 : 1);
