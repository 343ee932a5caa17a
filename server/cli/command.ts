import type { Storage } from "../../adapters/index.ts";
import type { Settings } from "../settings/config.ts";

/** An expected failure of a command. Scripts read `code`. */
export class CommandError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.name = "CommandError";
    this.code = code;
  }
}

/** What was typed. */
export type CommandInput = {
  args: string[];
  options: Record<string, string | boolean | string[] | undefined>;
  /** Prints a remark on stderr for a human reader; not with `--json`. */
  note(text: string): void;
};

export type CommandContext = CommandInput & {
  settings: Settings;
  storage: Storage;
  /** Prompts for a new password on a terminal; otherwise reads it from stdin. */
  readPassword(): Promise<string>;
};

/** A subcommand of `linkgate`. */
export type Command = CommandSyntax & (StorageCommand | StandaloneCommand);

type CommandSyntax = {
  /** The words typed, such as `org create`. */
  name: string;
  summary: string;
  /** Descriptions by syntax: `<name>` is required, `[name...]` takes any number. */
  arguments?: Record<string, string>;
  /** Descriptions by syntax, such as `--plan <plan>`; `--claim <pair...>` can be repeated. */
  options?: Record<string, string>;
  /** What follows the name in the example that the help shows. */
  example?: string;
  /** Whether the result is a document of a known format, which is printed as JSON without `--json`, too. */
  isDocument?: boolean;
};

/** Uses the database of the settings. */
export type StorageCommand = {
  /** Whether it changes nothing. Every other command is recorded in the operator's log. */
  isReadOnly?: boolean;
  /**
   * `database`: one that exists. `schema`: the current one. A command that changes something creates the database and applies
   * pending migrations first; one that is read-only fails.
   */
  needs?: "database" | "schema";
  /** Returns the document that `--json` prints. */
  run(context: CommandContext): Promise<object>;
};

/** Uses no settings, but the databases that its options name. */
type StandaloneCommand = { runAlone(input: CommandInput): Promise<object> };
