import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { FLOWS, type Flow } from "../harness/clients/flow-titles.ts";
import { ROOT, temporaryFolder } from "../harness/program.ts";
import { readResults as readReport } from "../runner/results.ts";

// Runs the tests of the client libraries, and writes the table of docs/clients.md from their results.

const DOCUMENT = path.join(ROOT, "docs/clients.md");

const TABLE = /(?<=<!-- results -->\n).*?(?=<!-- end of results -->)/s;

const COLUMNS: Record<Flow, string> = {
  clientCredentials: "Client credentials",
  code: "Code with PKCE",
  userinfo: "Userinfo",
  refresh: "Refresh",
  revocation: "Revocation",
  error: "Errors",
  introspection: "Introspection",
};

async function runTests(): Promise<string[]> {
  const file = path.join(temporaryFolder("clients"), "results.json");
  const child = spawn(process.execPath, ["test/run.ts", "--clients", `--results=${file}`], {
    cwd: ROOT,
    env: { ...process.env, TEST_DATABASE: "sqlite" },
    stdio: "inherit",
  });
  await once(child, "exit");
  const { passed, failed } = readReport(file);
  if (failed.length > 0) throw new Error("not every test passed");
  return passed;
}

function readResults(titles: string[]): Map<string, Set<string>> {
  const results = new Map<string, Set<string>>();
  for (const title of titles) {
    const flow = Object.entries(FLOWS).find(([, words]) => title.endsWith(words));
    if (!flow) continue;
    const library = title.slice(0, -flow[1].length).trim();
    results.set(library, (results.get(library) ?? new Set()).add(flow[0]));
  }
  return results;
}

function render(results: Map<string, Set<string>>): string {
  const flows = Object.keys(COLUMNS);
  const rows = [...results]
    .toSorted(([one], [other]) => one.localeCompare(other, "en"))
    .map(([library, passed]) => [library, ...flows.map((flow) => (passed.has(flow) ? "yes" : "–"))]);
  const lines = [["Library", ...Object.values(COLUMNS)], ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  const date = new Date().toLocaleDateString("en-US", { dateStyle: "medium", timeZone: "UTC" });
  return [
    `Tested on ${date}:`,
    "",
    lines[0],
    `|${"---|".repeat(flows.length + 1)}`,
    ...lines.slice(1),
    "",
  ].join("\n");
}

const results = readResults(await runTests());
const document = await readFile(DOCUMENT, "utf8");
await writeFile(
  DOCUMENT,
  document.replace(TABLE, () => render(results)),
);
