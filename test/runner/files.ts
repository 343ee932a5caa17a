import { globSync, readFileSync } from "node:fs";

/** Groups of tests. Without one of them, all tests run that need no processes, browser or client libraries. */
export const GROUPS = ["rest", "processes", "browser", "clients", "release", "failover", "races"] as const;
export type Selection = { [group in (typeof GROUPS)[number]]: boolean };
export type Engine = "sqlite" | "postgres" | "mysql";

type Stage = "test" | "long" | "processes" | "browser" | "clients" | "release" | "failover" | "races";

const ALL = "test/**/*.test.ts";
// Other files run on SQLite only.
const DATABASES = /^export const databases = "(all|servers)";$/m;
const STAGE = /^export const stage = "(\w+)";$/m;
// Other files that belong to a stage say so.
const STAGES_OF_FOLDERS: [folder: string, stage: Stage][] = [
  ["test/browser/", "browser"],
  ["test/processes/", "processes"],
  ["test/clients/", "clients"],
  ["test/conformance/mcp/", "clients"],
  ["test/conformance/oidf/", "processes"],
  ["test/release/", "release"],
  ["test/failover/", "failover"],
];
// Some of its tests are skipped where a program is missing.
const NEEDS_PROGRAM = /harness\/(skip|terminal)\.ts"/;
// These tests have many more rounds in this stage.
const HAS_ROUNDS = /\brounds\(/;

/** Lists the test files of a selection on a database. */
export function filesFor(selection: Selection, engine: Engine): string[] {
  const isSelected = selectorOf(selection);
  return filesOf([ALL]).filter((file) => {
    const text = readFileSync(file, "utf8");
    const [, databases] = DATABASES.exec(text) ?? [];
    const isOnEngine = engine === "sqlite" ? databases !== "servers" : databases !== undefined;
    return isOnEngine && isSelected(stageOf(file, text), text, engine);
  });
}

type Selector = (stage: Stage, text: string, engine: Engine) => boolean;

function selectorOf(selection: Selection): Selector {
  const { rest, races } = selection;
  const chosen = (["processes", "browser", "clients", "release", "failover"] as const).find(
    (stage) => selection[stage],
  );
  if (chosen) return (stage) => stage === chosen;
  if (races) return (stage, text) => stage === "races" || HAS_ROUNDS.test(text);
  if (!rest) return (stage) => stage === "test";
  // What `npm test` runs in CI on a machine that has nothing else.
  const isLeft: Selector = (_stage, text, engine) => engine !== "sqlite" || NEEDS_PROGRAM.test(text);
  return (stage, ...file) => stage === "long" || (stage === "test" && isLeft(stage, ...file));
}

function stageOf(file: string, text: string): Stage {
  const [, declared] = STAGE.exec(text) ?? [];
  const [, ofFolder] = STAGES_OF_FOLDERS.find(([folder]) => file.startsWith(folder)) ?? [];
  return (declared as Stage | undefined) ?? ofFolder ?? "test";
}

export const filesOf = (patterns: string[]): string[] => globSync(patterns).toSorted();
