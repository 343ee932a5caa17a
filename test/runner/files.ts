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

type Stage = "test" | "long" | "processes" | "browser" | "clients" | "release" | "races";

const ALL = "test/**/*.test.ts";
const ON_EVERY_DATABASE = 'export const databases = "all";';
const STAGE = /^export const stage = "(\w+)";$/m;
// Other files that belong to a stage say so.
const STAGES_OF_FOLDERS: [folder: string, stage: Stage][] = [
  ["test/processes/", "processes"],
  ["test/clients/", "clients"],
  ["test/conformance/mcp/", "clients"],
  ["test/conformance/oidf/", "processes"],
  ["test/release/", "release"],
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
    const isOnEngine = engine === "sqlite" || text.includes(ON_EVERY_DATABASE);
    return isOnEngine && isSelected(stageOf(file, text), text, engine);
  });
}

type Selector = (stage: Stage, text: string, engine: Engine) => boolean;

function selectorOf(selection: Selection): Selector {
  const { rest, races } = selection;
  const chosen = (["processes", "browser", "clients", "release"] as const).find((stage) => selection[stage]);
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

/** Lists the files that match patterns. */
export function filesOf(patterns: string[]): string[] {
  return globSync(patterns).toSorted();
}
