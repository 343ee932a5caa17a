import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { PYTHON } from "./harness/python.ts";

// Every test that this machine can run: all of them on SQLite, those that a database decides again on each other one.
const AVA = path.join(path.dirname(createRequire(import.meta.url).resolve("ava")), "cli.js");
const ON_EVERY_DATABASE = [
  "test/*.test.ts",
  "test/{adapters,oauth,processes,resources,server/people,server/dashboard}/**/*.test.ts",
  // What none decides: documents, addresses, headers, forms, what a browser makes of a page, limits in memory, and what a
  // scope or a role allows. MCP is a face of the core that the tests of the API hold on every database.
  "!test/oauth/{authorize-errors,client-authentication,client-limits,cors,discovery,id-token,json-errors,pages,pkce}.test.ts",
  "!test/oauth/{prompt,redirect-match,scopes,select-account,state,token-endpoint,token-nonsense}.test.ts",
  "!test/resources/{addresses,body,cors,limits,logging,metadata,methods,redirect-page,scope-matrix,shared-limits}.test.ts",
  "!test/resources/mcp/{complaints,discovery,gate,operations,outputs,refusals,tools,transport,webhooks}.test.ts",
  "!test/resources/openapi/*.test.ts",
  "!test/resources/webhooks/{addresses,fields,metrics,names,readme,receivers,retry-after,schedule,scopes}.test.ts",
  "!test/server/dashboard/{link-browser,link-forms,link-pages,one-time-view,one-time-view-browser,pages}.test.ts",
  "!test/server/dashboard/{qr,quick-start,reauthentication,roles,walk}.test.ts",
  "!test/server/people/{apart,cross-site,external-again,external-browser,external-forgery}.test.ts",
  "!test/server/people/{external-transactions,pages,return-to,throttle}.test.ts",
];
// Far more than any run takes: what hangs is interrupted, and ava then names the tests that were not done.
const LIMIT_MS = 20 * 60_000;
const CHROMIUM = "/usr/bin/chromium";
const COMPILED = path.join(import.meta.dirname, "../node_modules/.cache/linkgate");

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
    timeout: LIMIT_MS,
    killSignal: "SIGINT",
    // Every file loads all of the service: what was compiled once is kept.
    env: { ...process.env, TEST_DATABASE: engine, NODE_COMPILE_CACHE: COMPILED },
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
if (!process.env.TEST_REDIS_URL) skipped.push("shared limits: set TEST_REDIS_URL to the address of a Redis");
if (!existsSync(CHROMIUM)) skipped.push(`browser tests: there is no ${CHROMIUM}`);
if (!PYTHON) skipped.push("the Python of the quick start: no python3 has authlib and requests");
for (const reason of skipped) console.log(`SKIPPED ${reason}`);
process.exit(passed ? 0 : 1);
