import { globSync, readFileSync } from "node:fs";

/** Which tests to run: all but those that need processes, a browser or client libraries, or one of these groups. */
export type Selection = {
  rest: boolean;
  processes: boolean;
  browser: boolean;
  clients: boolean;
  release: boolean;
  races: boolean;
};
export type Engine = "sqlite" | "postgres" | "mysql";

const IN_PROCESSES = [
  "test/processes/**/*.test.ts",
  "!test/processes/{deploy,disk-failure,hosts,metadata,other-programs,outage,power-cut,rolling-restart}.test.ts",
  "test/adapters/database/{migrations,newer-schema}.test.ts",
  "test/server/cli/operator-log.test.ts",
  "test/server/provider/two-processes.test.ts",
  "test/server/startup-errors.test.ts",
];
const IN_PROCESSES_ON_SQLITE = [
  "test/processes/**/*.test.ts",
  "!test/processes/rolling-restart.test.ts",
  "test/adapters/database/{migrations,newer-schema}.test.ts",
  "test/client/package.test.ts",
  "test/conformance/oidf/*.test.ts",
  "test/documentation/commands.test.ts",
  "test/server/cli/**/*.test.ts",
  "test/server/{disk-full,first-run,startup-errors,stored-secrets}.test.ts",
  "test/server/keys/key-file.test.ts",
  "test/server/process/signals.test.ts",
  "test/server/provider/two-processes.test.ts",
];
const IN_BROWSER = [
  "test/client/browser.test.ts",
  "test/server/auth/{passkeys,sso}/browser.test.ts",
  "test/server/dashboard/{keyboard,one-time-view-browser,pages,state-pages}.test.ts",
  "test/server/dashboard/links/browser.test.ts",
  "test/server/docs/{accessibility,browser}.test.ts",
  "test/server/interactions/{browser,popup,redirect-chain}.test.ts",
  "test/server/mail/pages.test.ts",
];
const IN_CLIENTS = ["test/clients/*.test.ts", "test/conformance/mcp/*.test.ts"];
const IN_RELEASE = ["test/release/*.test.ts"];
const ON_SQLITE = [
  "test/**/*.test.ts",
  ...[...IN_PROCESSES_ON_SQLITE, ...IN_BROWSER, ...IN_CLIENTS, ...IN_RELEASE]
    .filter((file) => !file.startsWith("!"))
    .map((file) => `!${file}`),
];
// rolling-restart runs only here: if its clients and nginx have to wait for a processor, they send requests on connections
// that were closed in the meantime.
const RACES = [
  "test/processes/{changes,client-changes,power-cut,rolling-restart}.test.ts",
  "test/resources/links/model.test.ts",
  "test/server/durable-answers.test.ts",
  "test/server/interactions/{consent-once,remembered-consent-race}.test.ts",
  "test/server/provider/authorization-code.test.ts",
];
const ON_EVERY_DATABASE = 'export const databases = "all";';
// Some of its tests are skipped where a program is missing.
const NEEDS_PROGRAM = /harness\/(skip|terminal)\.ts"/;

/** Lists the test files of a selection on a database. */
export function filesFor(selection: Selection, engine: Engine): string[] {
  if (selection.processes) return filesOf(engine === "sqlite" ? IN_PROCESSES_ON_SQLITE : IN_PROCESSES);
  if (selection.browser) return filesOf(IN_BROWSER);
  if (selection.clients) return filesOf(IN_CLIENTS);
  if (selection.release) return filesOf(IN_RELEASE);
  if (selection.races) return filesOf(RACES);
  if (engine !== "sqlite")
    return filesOf(ON_SQLITE).filter((file) => textOf(file).includes(ON_EVERY_DATABASE));
  const files = filesOf(ON_SQLITE);
  return selection.rest ? files.filter((file) => NEEDS_PROGRAM.test(textOf(file))) : files;
}

/** Lists the files that match patterns, of which those that start with `!` exclude files. */
export function filesOf(patterns: string[]): string[] {
  const [excluded = [], included = []] = [true, false].map((isExcluded) =>
    patterns.filter((pattern) => pattern.startsWith("!") === isExcluded),
  );
  return globSync(included, { exclude: excluded.map((pattern) => pattern.slice(1)) }).toSorted();
}

function textOf(file: string): string {
  return readFileSync(file, "utf8");
}
