import { spawnSync } from "node:child_process";
import test, { type ExecutionContext } from "ava";
import { Program, ROOT } from "./program.ts";
import { skip } from "./skip.ts";

/** What is typed after each prompt. */
export type Script = [prompt: string, keys: string][];

// Not in a shell, which may find another one: a bash whose input is a socket reads ~/.bashrc.
const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

/** Declares a test that needs a pseudo-terminal. */
export function testOnTerminal(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  if (hasPython) test(title, run);
  else skip(title, "there is no python3");
}

/** Runs Node with these arguments on a pseudo-terminal. `says` waits for what the terminal shows. */
export function startOnTerminal(args: string[], script: Script, settings: Record<string, string>) {
  const command = JSON.stringify([process.execPath, ...args]);
  const program = new Program(
    "python3",
    [`${ROOT}test/harness/terminal.py`, command, JSON.stringify(script)],
    { settings: { TERM: "xterm-256color", ...settings } },
  );
  return {
    says: (pattern: RegExp) => program.says(pattern, "stderr"),
    ended: program.ended.then(({ stdout }) => JSON.parse(stdout) as { shown: string; code: number }),
  };
}
