// Runs the canaries of the seams: node test/seams.ts [next | version]
// With `next`, they run with the newest version of oidc-provider, which is installed into a temporary folder.

import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT, temporaryFolder } from "./harness/program.ts";
import { type Report, readResults } from "./runner/results.ts";

const CANARIES = "test/oauth/canaries.test.ts";

const [wanted] = process.argv.slice(2);
const folder = temporaryFolder("seams");
if (wanted) {
  const name = `oidc-provider@${wanted === "next" ? "latest" : wanted}`;
  execFileSync("npm", ["install", "--silent", "--ignore-scripts", "--prefix", folder, name]);
}
const home = wanted ? folder : ROOT;
const { version } = JSON.parse(
  readFileSync(path.join(home, "node_modules/oidc-provider/package.json"), "utf8"),
);
const { passed, failed } = runCanaries(redirectTo(home));
console.log(`oidc-provider ${version}`);
console.table([
  ...passed.map((title) => ({ canary: title, result: "passed" })),
  ...failed.map(({ title }) => ({ canary: title, result: "FAILED" })),
]);
if (failed.length > 0 || passed.length === 0) process.exitCode = 1;

/** Writes a module that makes every import of oidc-provider one of the package in this folder. */
function redirectTo(home: string): string {
  const file = path.join(folder, "redirect.mjs");
  const parentURL = JSON.stringify(pathToFileURL(path.join(home, "package.json")));
  const code = `import { registerHooks } from "node:module";
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier, /^oidc-provider(\\/|$)/.test(specifier) ? { ...context, parentURL: ${parentURL} } : context),
});`;
  writeFileSync(file, code);
  return pathToFileURL(file).href;
}

/** Writes why canaries failed. */
function runCanaries(hooks: string): Report {
  const results = path.join(folder, "results.json");
  const { stderr } = spawnSync(process.execPath, ["test/run.ts", CANARIES, `--results=${results}`], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: `--import ${hooks}`, TEST_SOURCES: "1", TEST_DATABASE: "sqlite" },
  });
  const report = readResults(results);
  for (const { message } of report.failed) console.log(message);
  if (report.passed.length === 0) console.log(stderr);
  return report;
}
