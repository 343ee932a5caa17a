import { spawnSync } from "node:child_process";
import test, { type ExecutionContext } from "ava";
import { Program, ROOT } from "./program.ts";
import { skip } from "./skip.ts";

/** What is typed after each prompt. */
export type Script = [prompt: string, keys: string][];

type Settings = Record<string, string>;

// Not in a shell, which may find another one: a bash whose input is a socket reads ~/.bashrc.
export const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

export function testOnTerminal(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  if (hasPython) test(title, run);
  else skip(title, "there is no python3");
}

export function startOnTerminal(args: string[], script: Script, settings: Settings, cwd?: string) {
  return runOnTerminal([process.execPath, ...args], script, { settings, ...(cwd && { cwd }) });
}

/** Runs a command of the CLI on a pseudo-terminal until it ends. */
export function commandOnTerminal(
  words: string[],
  script: Script,
  settings: Record<string, string> = {},
  cwd?: string,
) {
  return startOnTerminal([`${ROOT}server/cli/linkgate.js`, ...words], script, settings, cwd).ended;
}

/** Runs a command on a pseudo-terminal. `says` waits for what the terminal shows, which may be half a line. */
export function runOnTerminal(
  command: string[],
  script: Script,
  { settings, ...others }: { settings: Settings; cwd?: string },
) {
  const words = [`${ROOT}test/harness/terminal.py`, JSON.stringify(command), JSON.stringify(script)];
  const all = { TERM: "xterm-256color", ...settings };
  const program = new Program("python3", words, { settings: all, ...others });
  const ended = program.ended.then(({ stdout }) => JSON.parse(stdout) as { shown: string; code: number });
  // A test that failed before it awaits this has its own error, and its terminal is killed.
  ended.catch(() => undefined);
  return {
    says: (pattern: RegExp) => program.shows(pattern),
    ended,
    type: (keys: string) => program.type(keys),
    async stop() {
      program.kill();
      return ended;
    },
  };
}
