// Runs every test that this machine can run: all of them on SQLite, and on each other database those whose result
// depends on it.
//
//   node test/run.ts [--processes | --browser | --clients | --races] [file…]
//
// --processes runs only the tests that start servers and commands as processes of their own.
// --browser runs only the tests that drive Chromium, which take minutes of processor time.
// --clients runs only the tests of client libraries, some of which are programs that Debian installs.
// --races runs only the tests of concurrent requests, with many more rounds. TEST_DATABASE limits the run to one
// database.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { PYTHON } from "./harness/clients/python.ts";
import { DEBIAN_PACKAGES, debianVersion } from "./harness/clients/versions.ts";
import { hasPgBouncer } from "./harness/database/pgbouncer.ts";
import { hasPostgres } from "./harness/database/postgres.ts";
import { HAS_NGINX } from "./harness/nginx.ts";
import { HAS_PROMTOOL } from "./harness/promtool.ts";

const AVA = path.join(path.dirname(createRequire(import.meta.url).resolve("ava")), "cli.js");
const TEMPLATE = path.join(import.meta.dirname, "harness/database/template.ts");
const IN_PROCESSES = [
  "test/processes/**/*.test.ts",
  "!test/processes/{deploy,extended-log,hosts,metadata,outage,rolling-restart}.test.ts",
  "test/server/cli/operator-log.test.ts",
];
const IN_PROCESSES_ON_SQLITE = [
  "test/processes/**/*.test.ts",
  "!test/processes/{replica,rolling-restart}.test.ts",
  "test/server/cli/**/*.test.ts",
  "test/server/{disk-full,first-run}.test.ts",
  "test/server/shutdown/signals.test.ts",
];
const IN_BROWSER = [
  "test/server/auth/sso/browser.test.ts",
  "test/server/dashboard/{keyboard,one-time-view-browser,pages,state-pages}.test.ts",
  "test/server/dashboard/links/browser.test.ts",
  "test/server/docs/accessibility.test.ts",
  "test/server/interactions/{browser,popup,redirect-chain}.test.ts",
  "test/server/mail/pages.test.ts",
];
const IN_CLIENTS = ["test/clients/*.test.ts"];
const ON_SQLITE = [
  "test/**/*.test.ts",
  ...[...IN_PROCESSES_ON_SQLITE, ...IN_BROWSER, ...IN_CLIENTS]
    .filter((file) => !file.startsWith("!"))
    .map((file) => `!${file}`),
];
// rolling-restart runs only here: if its clients and nginx have to wait for a processor, they send requests on connections
// that were closed in the meantime.
const RACES = [
  "test/processes/{changes,client-changes,rolling-restart}.test.ts",
  "test/resources/links/model.test.ts",
  "test/server/interactions/{consent-once,remembered-consent-race}.test.ts",
  "test/server/provider/authorization-code-race.test.ts",
];
const ON_EVERY_DATABASE = [
  "test/*.test.ts",
  "test/{adapters,resources}/**/*.test.ts",
  "test/server/{auth,dashboard,interactions,provider}/**/*.test.ts",
  // Not these: documents, headers, forms, browser behavior, in-memory limits, scopes, roles and the validation of input
  // are the same on every database. MCP and the dashboard's pages call the same services as the API, whose tests run on
  // every database.
  "!test/{documentation,imports,security}.test.ts",
  "!test/resources/access/!(dpop|ended-membership).test.ts",
  "!test/resources/http/*.test.ts",
  "!test/resources/outbound/*.test.ts",
  "!test/resources/links/{mass-assignment,redirect-page,validation}.test.ts",
  "!test/resources/{mcp,openapi,organization}/*.test.ts",
  "!test/resources/idempotency/retry.test.ts",
  "!test/resources/webhooks/{example-receiver,metrics,require-paid-plan,responses,retry-after}.test.ts",
  "!test/resources/webhooks/{retry-policy,scopes,signature,ssrf-guard,validation}.test.ts",
  "!test/server/auth/!(account-limits|known-devices|password-change-race|register|sessions|sign-in-audit).test.ts",
  "!test/server/auth/sso/!(sso).test.ts",
  "!test/server/dashboard/{*,!(organization)/*}.test.ts",
  "!test/server/dashboard/organization/{audit-format,organizations,reset-links}.test.ts",
  "!test/server/interactions/!(consent|consent-once|remembered-consent|remembered-consent-race).test.ts",
  "!test/server/provider/{authorization-errors,client-authentication,client-credentials,cors}.test.ts",
  "!test/server/provider/{discovery,id-token,json-errors}.test.ts",
  "!test/server/provider/{malformed-token-requests,pkce,plan-required,prompt,redirect-uri-matching}.test.ts",
  "!test/server/provider/{pushed-authorization-requests,resource-indicators,role-scopes}.test.ts",
  "!test/server/provider/{registration,registration-expiry,registration-storage}.test.ts",
  "!test/server/provider/{scopes,sessions,state,token-endpoint,token-substitution,userinfo}.test.ts",
  "!test/server/provider/workload-{claims,clients,identity,keys,requests,trust}.test.ts",
];
// Far longer than any run. A run that hangs is interrupted, and ava then lists the tests that did not finish.
const LIMIT_MS = 20 * 60_000;
const CHROMIUM = "/usr/bin/chromium";
// Every test file loads the whole service: a cache saves most of the compilation.
const COMPILED = path.join(import.meta.dirname, "../node_modules/.cache/linkgate");

type Run = { engine: "sqlite" | "postgres" | "mysql"; url?: string; name: string };

const { TEST_DATABASE } = process.env;
const { values: options, positionals: chosen } = parseArgs({
  options: {
    processes: { type: "boolean", default: false },
    browser: { type: "boolean", default: false },
    clients: { type: "boolean", default: false },
    races: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const allRuns: Run[] = [
  { engine: "sqlite", name: "SQLite" },
  { engine: "postgres", name: "PostgreSQL", ...urlOf("TEST_POSTGRES_URL") },
  { engine: "mysql", name: "MariaDB", ...urlOf("TEST_MYSQL_URL") },
];
const runs = TEST_DATABASE ? allRuns.filter(({ engine }) => engine === TEST_DATABASE) : allRuns;
if (runs.length === 0) throw new Error("TEST_DATABASE must be sqlite, postgres or mysql");

function urlOf(variable: string): { url?: string } {
  const url = process.env[variable];
  return url ? { url } : {};
}

function filesFor({ engine }: Run): string[] {
  if (chosen.length > 0) return chosen;
  if (options.processes) return engine === "sqlite" ? IN_PROCESSES_ON_SQLITE : IN_PROCESSES;
  if (options.browser) return IN_BROWSER;
  if (options.clients) return IN_CLIENTS;
  if (options.races) return RACES;
  return engine === "sqlite" ? ON_SQLITE : ON_EVERY_DATABASE;
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

/** Runs ava once. Resolves to true if every test passed. */
async function runTests({ engine, name }: Run, files: string[]): Promise<boolean> {
  console.log(`\n== ${name}`);
  const env = { ...process.env, TEST_DATABASE: engine, NODE_COMPILE_CACHE: COMPILED };
  const template = await createTemplate(env);
  // A cluster opens up to 40 connections, and PostgreSQL allows 100 by default.
  const concurrency = options.processes && engine === "postgres" ? ["--concurrency=2"] : [];
  const child = spawn(process.execPath, [AVA, ...concurrency, ...files], {
    stdio: "inherit",
    timeout: LIMIT_MS,
    killSignal: "SIGINT",
    env: { ...env, TEST_TEMPLATE: template.url, TEST_ROUNDS: options.races ? "many" : "few" },
  });
  const started = performance.now();
  const [code] = await once(child, "exit");
  await template.drop();
  console.log(`${name}: ${Math.round((performance.now() - started) / 1000)} s`);
  return code === 0;
}

const skipped: string[] = [];
let passed = true;
for (const run of runs) {
  if (run.engine !== "sqlite" && !run.url) {
    skipped.push(`${run.name}: TEST_${run.engine.toUpperCase()}_URL is not set`);
    continue;
  }
  passed = (await runTests(run, filesFor(run))) && passed;
}
if (!process.env.TEST_REDIS_URL) skipped.push("shared rate limits: TEST_REDIS_URL is not set");
if (!HAS_NGINX) skipped.push("tests behind nginx: nginx is not installed");
if (!HAS_PROMTOOL) skipped.push("alert rules: promtool is not installed");
if (!existsSync(CHROMIUM)) skipped.push(`browser tests: ${CHROMIUM} is missing`);
if (!hasPgBouncer) skipped.push("a connection pooler for PostgreSQL: pgbouncer is not installed");
if (!PYTHON) skipped.push("the Python quick start: no python3 has authlib and requests");
if (!hasPostgres) skipped.push("a replica of PostgreSQL: the PostgreSQL server is not installed");
if (options.clients) {
  const missing = DEBIAN_PACKAGES.filter((name) => !debianVersion(name));
  skipped.push(...missing.map((name) => `a client library: the Debian package ${name} is not installed`));
}
for (const reason of skipped) console.log(`SKIPPED ${reason}`);
if (chosen.length === 0 && !Object.values(options).includes(true))
  console.log(`
Not in this run:
  npm run test:processes  tests that start servers and commands as processes
  npm run test:browser    tests that drive Chromium
  npm run test:clients    tests of client libraries
  npm run test:races      tests of concurrent requests, with many more rounds`);
process.exit(passed ? 0 : 1);
