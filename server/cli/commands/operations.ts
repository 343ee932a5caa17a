import { readFileSync } from "node:fs";
import { Option } from "commander";
import type { z } from "zod";
import { OPERATOR } from "../../../resources/events/types.ts";
import { found, Problem } from "../../../resources/http/problem.ts";
import { typeOfField, validate } from "../../../resources/http/validate.ts";
import { DECLARATIONS } from "../../operations/index.ts";
import {
  type CommandDeclaration,
  type Environment,
  inputSchemaOf,
  methodOf,
  type Operation,
  type OperatorOperation,
  type Subjects,
  type Word,
} from "../../operations/operation.ts";
import {
  type Command,
  type CommandContext,
  CommandError,
  EXAMPLE_ORG,
  findOrganization,
  ORG_ID,
  type Planned,
} from "../execution/command.ts";

/** What a first argument names. `find` throws Problem 404. */
type Subject<Found> = {
  argument: Record<string, string>;
  example: string;
  find(context: CommandContext): Promise<Found>;
};

const SUBJECTS: { [On in Exclude<keyof Subjects, "nothing">]: Subject<Subjects[On]> } = {
  organization: {
    argument: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    find: async ({ storage, args: [id] }) => ({ organization: await findOrganization(storage, id) }),
  },
  user: {
    argument: { "<username>": "the user's name" },
    example: "ada",
    async find({ storage, args: [name] }) {
      const { id, username } = found(await storage.accounts.findByUsername(name), `user ${name}`);
      return { user: { id, username } };
    },
  },
  link: {
    argument: { "<link>": "ID, slug or short URL of the link" },
    example: "https://go.example.com/spring",
    async find({ storage, args: [text] }) {
      const pathname = /^https?:/i.test(text) ? URL.parse(text)?.pathname : undefined;
      return found(await storage.disabledLinks.find(pathname?.slice(1) ?? text), `link ${text}`);
    },
  },
};

/** The commands that run what is declared for members, for any organization, or for the operator only. */
export const operationCommands: Command[] = DECLARATIONS.flatMap((declared) =>
  declared.command ? [commandOf(declared, declared.command)] : [],
);

type Declared = Operation | OperatorOperation;

function subjectOf(operation: Declared): Subject<object> | undefined {
  const { on } = operation.at ? { on: "organization" as const } : operation;
  return on === "nothing" ? undefined : SUBJECTS[on];
}

/** An argument or option, and the parameter or field that it is. */
type Named = Word & { name: string };
type Words = { args: Named[]; options: Named[]; hasSubject: boolean };

function commandOf(operation: Declared, command: CommandDeclaration): Command {
  const { summary, description = "" } = operation;
  const { argument = {}, example = "" } = subjectOf(operation) ?? {};
  const words = wordsOf(operation, command);
  const { question } = command;
  return {
    name: command.name,
    summary,
    description: [summary, description].filter(Boolean).join(". ").replace(/\.$/, "").replaceAll("`", ""),
    arguments: { ...argument, ...toSyntax(words.args) },
    options: toSyntax(words.options),
    example: [example, command.example].filter(Boolean).join(" "),
    isReadOnly: operation.at ? methodOf(operation) === "GET" : operation.events === undefined,
    ...(question && {
      irreversible: async (planned) => question(valuesOf(words, planned), await nameOf(operation, planned)),
    }),
    run: (context) => run(operation, command, words, context),
  };
}

/** Returns how a question calls the subject: an organization that is found by name and ID. */
async function nameOf(operation: Declared, { args: [subject], storage }: Planned): Promise<string> {
  if (subjectOf(operation) !== SUBJECTS.organization) return subject;
  const organization = await storage?.organizations.find(subject).catch(() => undefined);
  return organization ? `"${organization.name}" (${subject})` : subject;
}

async function run(
  operation: Declared,
  { result }: CommandDeclaration,
  words: Words,
  context: CommandContext,
): Promise<object> {
  const { storage, settings, urls, printFirst: beforeCommit, note, readPassword } = context;
  const subject = (await subjectOf(operation)?.find(context)) as Subjects["organization"];
  const environment: Environment = { storage, settings, urls };
  const [params, fields] = split(operation, valuesOf(words, context));
  try {
    const schema = inputSchemaOf(operation, environment);
    const input = schema ? validate(schema, fields) : {};
    const request = { ...environment, ...subject, actor: OPERATOR, params, input, beforeCommit };
    const output = await operation.run?.({ ...request, note, readPassword } as never);
    if (result) return result({ params, output, ...subject });
    return (output as object | undefined) ?? { ...subject, ...params, ...(input as object) };
  } catch (error) {
    throw error instanceof Problem ? toCommandError(error, words) : error;
  }
}

/** Throws CommandError `file_not_found`. */
function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  }
}

/** Parameters of the path are the first object, fields of the input the second. */
function split({ at = "" }: { at?: string }, values: Record<string, unknown>) {
  const [params = [], fields = []] = [true, false].map((isParameter) =>
    Object.entries(values).filter(([name]) => at.includes(`{${name}}`) === isParameter),
  );
  return [Object.fromEntries(params) as Record<string, string>, Object.fromEntries(fields)] as const;
}

function wordsOf(operation: Declared, { arguments: args = {}, options = {} }: CommandDeclaration): Words {
  const shape = shapeOf(operation);
  return {
    args: Object.entries(args).map(([name, word]) => ({ name, ...toArgument(name, word, shape[name]) })),
    options: Object.entries(options).map(([name, word]) => ({ name, ...toOption(name, word) })),
    hasSubject: subjectOf(operation) !== undefined,
  };
}

type Field = Parameters<typeof typeOfField>[0];

/** The fields of an input that depends on the settings have a syntax of their own. */
function shapeOf({ input }: Pick<Declared, "input">): Record<string, Field> {
  return typeof input === "object" && "shape" in input ? (input.shape as Record<string, Field>) : {};
}

function toArgument(name: string, word: string | Word, field: Field | undefined): Word {
  if (typeof word === "object") return word;
  switch (field && typeOfField(field)) {
    case "boolean":
      return { syntax: "<on|off>", text: word, parse: ([text]) => parseSwitch(name, text) };
    case "enum":
      return { syntax: `<${(field as z.ZodEnum).options.join("|")}>`, text: word };
    case "array":
      return { syntax: `[${name.replace(/s$/, "").split("_").at(-1)}...]`, text: word };
    default:
      return { syntax: `<${name.replaceAll("_", "-")}>`, text: word };
  }
}

function parseSwitch(name: string, word: string | undefined): boolean {
  if (word === "on" || word === "off") return word === "on";
  throw new CommandError(`invalid_${name}`, "The last argument must be on or off.");
}

function toOption(name: string, word: string | Word): Word {
  return typeof word === "object" ? word : { syntax: `--${name.replaceAll("_", "-")}`, text: word };
}

function toSyntax(words: Word[]): Record<string, string> {
  return Object.fromEntries(words.map(({ syntax, text }) => [syntax, text]));
}

/** Reads what was typed: name of the parameter or field → value. What wasn't typed is left out. */
function valuesOf(
  { args, options, hasSubject }: Words,
  typed: Pick<CommandContext, "args" | "options">,
): Record<string, unknown> {
  const rest = typed.args.slice(hasSubject ? 1 : 0);
  return Object.fromEntries([
    ...args.map((word, index) => {
      const value = word.syntax.endsWith("...]") ? rest.slice(index) : rest[index];
      return [word.name, parseWord(value, word)];
    }),
    ...options.flatMap((word) => {
      const value = typed.options[new Option(word.syntax).attributeName()];
      return value === undefined ? [] : [[word.name, parseWord(value, word)]];
    }),
  ]);
}

function parseWord(value: unknown, { parse, isFile }: Word): unknown {
  if (isFile) return readText(String(value));
  return parse && value !== undefined ? parse([value].flat().map(String)) : value;
}

/** Names the words that were typed instead of their fields. */
function toCommandError({ code, message, errors = [] }: Problem, { args, options }: Words): CommandError {
  const lines = errors.map(({ field, message: rule }) => {
    if (/^[A-Z]/.test(rule)) return rule;
    const [name, ...path] = field.split(".");
    if (args.some((one) => one.name === field))
      return `The ${String(name).replaceAll("_", " ").replace(/\bid$/, "ID")} ${rule}.`;
    const option = options.find((one) => one.name === name);
    if (!option) return undefined;
    if (rule === "is required") return `Missing option ${option.syntax}.`;
    const [flag] = option.syntax.split(" ");
    // A key of an object is what was typed, and the index of a list isn't.
    const key = path.filter((part) => !/^\d+$/.test(part)).join(".");
    return `${[flag, key].filter(Boolean).join(" ")} ${rule}.`;
  });
  return new CommandError(code, lines.length > 0 && lines.every(Boolean) ? lines.join("\n") : message);
}
