import { existsSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "../harness/program.ts";
import type { Engine } from "../runner/files.ts";

/** A change of the product that a test must notice. */
export type Fault = ReturnType<typeof readFault>;

/** How the test files are run: by `npm test` or by `npm run test:processes`. */
export type Stage = "test" | "processes";

const FOLDER = import.meta.dirname;

export function readFaults(names: string[]) {
  const all = globSync("*.patch", { cwd: FOLDER }).map((file) => path.basename(file, ".patch"));
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0) exit(`test/faults has no patch ${unknown.join(", ")}.`);
  const faults = (names.length > 0 ? names : all.sort()).map(readFault);
  for (const { name, killedBy } of faults)
    for (const file of killedBy)
      if (!existsSync(path.join(ROOT, file))) exit(`${name}.patch names ${file}, which doesn't exist.`);
  return faults;
}

function exit(message: string): never {
  console.error(message);
  process.exit(1);
}

/** A patch begins with a sentence and with fields, which `git apply` skips. */
function readFault(name: string) {
  const patch = path.join(FOLDER, `${name}.patch`);
  const [header = ""] = readFileSync(patch, "utf8").split("\n--- ", 1);
  const [breaks = "", ...lines] = header.trim().split("\n");
  const fields = new Map(lines.map((line) => line.split(": ", 2) as [string, string]));
  const killedBy = fields.get("Killed by")?.split(", ") ?? [];
  const stage = fields.get("Stage") ?? "test";
  const database = fields.get("Database") ?? "sqlite";
  if (!breaks || killedBy.length === 0 || !isStage(stage) || !isEngine(database))
    exit(`The header of ${name}.patch needs a sentence and "Killed by: test/…".`);
  return { name, patch, breaks, killedBy, stage, database };
}

const isStage = (text: string): text is Stage => text === "test" || text === "processes";
const isEngine = (text: string): text is Engine => ["sqlite", "postgres", "mysql"].includes(text);
