import { spawnSync } from "node:child_process";
import test, { type ExecutionContext } from "ava";
import { Program, ROOT } from "./program.ts";
import { skip } from "./skip.ts";

/** What is typed after each prompt. */
export type Script = [prompt: string, keys: string][];

type Options = { settings: Record<string, string>; cwd?: string };

// Not in a shell, which may find another one: a bash whose input is a socket reads ~/.bashrc.
export const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

/** Declares a test that needs a pseudo-terminal. */
export function testOnTerminal(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  if (hasPython) test(title, run);
  else skip(title, "there is no python3");
}

/** Runs Node with these arguments on a pseudo-terminal. */
export function startOnTerminal(
  args: string[],
  script: Script,
  settings: Record<string, string>,
  cwd?: string,
) {
  return runOnTerminal([process.execPath, ...args], script, { settings, ...(cwd && { cwd }) });
}

/** Runs a command on a pseudo-terminal. `says` waits for what the terminal shows. */
export function runOnTerminal(command: string[], script: Script, options: Options) {
  const { settings, ...others } = options;
  const program = new Program(
    "python3",
    [`${ROOT}test/harness/terminal.py`, JSON.stringify(command), JSON.stringify(script)],
    { settings: { TERM: "xterm-256color", ...settings }, ...others },
  );
  const ended = program.ended.then(({ stdout }) => JSON.parse(stdout) as { shown: string; code: number });
  return {
    says: (pattern: RegExp) => program.says(pattern, "stderr"),
    ended,
    type: (keys: string) => program.type(keys),
    /** Ends the command and the programs that it started. */
    async stop() {
      program.kill();
      return ended;
    },
  };
}
