import type { Storage } from "../../../adapters/index.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { REASON_MAX, REASON_RULE, reasonSchema } from "../../operations/schemas.ts";
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
  /** Whether the result is a document of a known format, which is printed as JSON without `--json`, too. */
  isDocument?: boolean;
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

type SubcommandOf<Subject> = Omit<CommandSyntax & StorageCommand, "run"> & {
  run(context: CommandContext & Subject): Promise<object>;
};

/** Returns the function that creates commands about one thing, which the first argument names and `find` looks up. */
export function commandsOn<Subject extends object>(
  argument: Record<string, string>,
  example: string,
  find: (context: CommandContext) => Promise<Subject>,
) {
  return ({ run, ...command }: SubcommandOf<Subject>): Command => ({
    ...command,
    arguments: { ...argument, ...command.arguments },
    example: `${example} ${command.example ?? ""}`,
    run: async (context) => run({ ...context, ...(await find(context)) }),
  });
}

/** Creates a command whose first argument is the ID of an organization; it fails with `not_found` for an unknown one. */
export const organizationCommand = commandsOn(
  { "<org-id>": ORG_ID },
  EXAMPLE_ORG,
  async ({ storage, args }) => ({ organization: await findOrganization(storage, args[0]) }),
);

/** Throws CommandError `not_found`. */
export async function findOrganization(storage: Storage, id: string) {
  return found(await storage.organizations.find(id), "Organization", id);
}

/** Returns how to call the organization of the first argument in a question: by name and ID, if the name is found. */
export async function nameInQuestion({ args: [id], storage }: Planned): Promise<string> {
  const organization = await storage?.organizations.find(id).catch(() => undefined);
  return organization ? `"${organization.name}" (${id})` : id;
}

/** @param syntax such as `--org <org-id>` */
export function missingOption(code: string, syntax: string): CommandError {
  return new CommandError(code, `Missing option ${syntax}.`);
}

/** `a, b or c` */
export function eitherOf(words: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(words);
}

/** Throws CommandError `not_found` for a missing value. */
export function found<T>(value: T | undefined, what: string, id: string): T {
  if (value === undefined) throw notFound(what, id);
  return value;
}

export function notFound(what: string, id: string): CommandError {
  return new CommandError("not_found", `${what} ${id} not found.`);
}

export function reasonOption(readers: string): Record<string, string> {
  return { "--reason <text>": `why, for ${readers}: 1 to ${REASON_MAX} characters` };
}

/** Throws CommandError `invalid_reason`. */
export function reasonOf({ reason }: CommandInput["options"]): string | null {
  const { success, data } = reasonSchema.safeParse(reason);
  if (success) return data;
  throw new CommandError("invalid_reason", `--reason ${REASON_RULE}.`);
}
