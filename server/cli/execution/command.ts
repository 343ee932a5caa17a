import type { Storage } from "../../../adapters/index.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { found, Problem } from "../../../resources/http/problem.ts";
import type { Settings } from "../../settings/config.ts";

/** Scripts read `code`. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns the code that scripts read. */
export function codeOf(error: unknown): string {
  return error instanceof CommandError || error instanceof Problem ? error.code : "failed";
}

export type CommandInput = {
  args: [string, string, ...string[]];
  options: Record<string, string | boolean | string[] | undefined>;
  /** Prints a remark on stderr for a human reader; not with `--json`. */
  note(text: string): void;
  /** Prints a part of the result before its end: one line of JSON with `--json`, otherwise the text. */
  print(part: object, text: string): void;
  /** Prints the result before its change is committed. Throws CommandError `output_failed`, which rolls it back. */
  printFirst(result: object): Promise<void>;
};

export type CommandContext = CommandInput & {
  settings: Settings;
  urls: PublicUrls;
  storage: Storage;
  /** Prompts for a new password on a terminal; otherwise reads it from stdin. */
  readPassword(): Promise<string>;
};

/** What is known before a command begins: its database may be missing, or not migrated. */
export type Planned = Pick<CommandInput, "args" | "options"> & { storage?: Storage };

export type Command = CommandSyntax & (StorageCommand | StandaloneCommand);

type CommandSyntax = {
  name: string;
  /** At most 48 characters, so a line of the list of commands fits on a terminal. */
  summary: string;
  /** What the help of the command says; by default, the summary. */
  description?: string;
  /** Descriptions by syntax: `<name>` is required, `[name...]` takes any number. */
  arguments?: Record<string, string>;
  /** Descriptions by syntax, such as `--plan <plan>`; `--claim <pair...>` can be repeated. */
  options?: Record<string, string>;
  /** Returns a question, if the command can't be undone with this input. On a terminal, the user has to agree. */
  irreversible?(input: Planned): string | undefined | Promise<string | undefined>;
  /** What follows the name in the example that the help shows. */
  example?: string;
  /** Returns what people read instead of the members of the result. */
  describe?(result: object): string | Promise<string>;
};

export type StorageCommand = {
  /** Every command that isn't read-only is recorded in the operator's log. */
  isReadOnly?: boolean;
  /** By default the current schema, which a read-only command doesn't create; `database` is one that exists. */
  needs?: "database" | "nothing";
  /** Returns the document that `--json` prints. */
  run(context: CommandContext): Promise<object>;
};

/** Opens no database but those that its options name. Resolves to nothing if it prints everything itself. */
type StandaloneCommand = { runAlone(input: CommandInput): Promise<object | undefined> };

export const ORG_ID = 'ID of the organization, as "org list" prints it';
export const EXAMPLE_ORG = "org_01JD9K2M4N6P8Q0R2S4T6V8W0X";

/** Throws Problem 404. */
export async function findOrganization({ organizations }: Storage, id: string) {
  return found(await organizations.find(id), `organization ${id}`);
}

/** @param syntax such as `--org <org-id>` */
export function missingOption(code: string, syntax: string): CommandError {
  return new CommandError(code, `Missing option ${syntax}.`);
}

/** `a, b or c` */
export function eitherOf(words: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(words);
}
