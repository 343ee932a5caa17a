import type { ParseArgsConfig } from "node:util";
import type { Storage } from "../../adapters/index.ts";
import type { Settings } from "../config.ts";

/** An expected failure of a command; `code` is for scripts. */
export class CommandError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "CommandError";
    this.code = code;
  }
}

export type Context = {
  args: string[];
  options: Record<string, string | boolean | undefined>;
  settings: Settings;
  storage: Storage;
  readStdin(): Promise<string>;
};

/** One command of the administration. */
export type Command = {
  /** As it is typed, with its arguments. */
  usage: string;
  summary: string;
  options?: NonNullable<ParseArgsConfig["options"]>;
  /** How many arguments follow the words of the command. */
  arguments: { least: number; most: number };
  /** Whether the schema is brought up to date before. */
  migrates: boolean;
  /** The answer, as `--json` prints it. */
  run(context: Context): Promise<object>;
};

/** The words of a command: what comes before its arguments and options. */
export function wordsOf({ usage }: Command): string[] {
  const words = usage.split(" ");
  const end = words.findIndex((word) => !/^[a-z][a-z-]*$/.test(word));
  return end === -1 ? words : words.slice(0, end);
}
