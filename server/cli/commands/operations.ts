import { readFileSync } from "node:fs";
import { Option } from "commander";
import type { z } from "zod";
import { OPERATOR } from "../../../resources/events/types.ts";
import { Problem } from "../../../resources/http/problem.ts";
import { typeOfField, validate } from "../../../resources/http/validate.ts";
import { OPERATIONS } from "../../operations/index.ts";
import {
  type CommandDeclaration,
  type Environment,
  inputSchemaOf,
  methodOf,
  type Operation,
  type Word,
} from "../../operations/operation.ts";
import {
  type Command,
  type CommandContext,
  CommandError,
  nameInQuestion,
  organizationCommand,
} from "../execution/command.ts";

/** The commands that run an operation of the management API for any organization. */
export const operationCommands: Command[] = OPERATIONS.flatMap((operation) =>
  operation.command ? [commandOf(operation, operation.command)] : [],
);

/** An argument or option, and the parameter or field that it is. */
type Named = Word & { name: string };
type Words = { args: Named[]; options: Named[] };

function commandOf(operation: Operation, command: CommandDeclaration): Command {
  const { summary, description = "" } = operation;
  const words = wordsOf(operation, command);
  return organizationCommand({
    name: command.name,
    summary,
    description: [summary, description].filter(Boolean).join(". ").replace(/\.$/, "").replaceAll("`", ""),
    ...(words.args.length > 0 && { arguments: toSyntax(words.args) }),
    ...(words.options.length > 0 && { options: toSyntax(words.options) }),
    ...(command.example && { example: command.example }),
    isReadOnly: methodOf(operation) === "GET",
    ...(command.question && {
      irreversible: async (planned) =>
        command.question?.(valuesOf(words, planned), await nameInQuestion(planned)),
    }),
    run: (context) => run(operation, command, words, context),
  });
}

async function run(
  operation: Operation,
  { result }: CommandDeclaration,
  words: Words,
  context: CommandContext & { organization: object },
): Promise<object> {
  const { storage, settings, urls, organization, printFirst: beforeCommit } = context;
  const environment: Environment = { storage, settings, urls };
  const [params, fields] = split(operation, withFiles(words, valuesOf(words, context)));
  try {
    const schema = inputSchemaOf(operation, environment);
    const input = schema ? validate(schema, fields) : {};
    const request = { ...environment, organization, actor: OPERATOR, params, input, beforeCommit };
    const output = await operation.run?.(request as never);
    if (result) return result({ params, output });
    return (output as object | undefined) ?? { organization, ...params, ...(input as object) };
  } catch (error) {
    throw error instanceof Problem ? toCommandError(error, words) : error;
  }
}

/** Throws CommandError `file_not_found`. */
function withFiles({ args }: Words, values: Record<string, unknown>): Record<string, unknown> {
  const files = args.flatMap(({ name, isFile }) => (isFile ? [[name, readText(String(values[name]))]] : []));
  return { ...values, ...Object.fromEntries(files) };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new CommandError("file_not_found", `Can't read ${file}.`);
  }
}

/** Parameters of the path are the first object, fields of the input the second. */
function split({ at }: Operation, values: Record<string, unknown>) {
  const [params = [], fields = []] = [true, false].map((isParameter) =>
    Object.entries(values).filter(([name]) => at.includes(`{${name}}`) === isParameter),
  );
  return [Object.fromEntries(params) as Record<string, string>, Object.fromEntries(fields)] as const;
}

function wordsOf(operation: Operation, { arguments: args = {}, options = {} }: CommandDeclaration): Words {
  const shape = shapeOf(operation);
  return {
    args: Object.entries(args).map(([name, word]) => ({ name, ...toArgument(name, word, shape[name]) })),
    options: Object.entries(options).map(([name, word]) => ({ name, ...toOption(name, word) })),
  };
}

type Field = Parameters<typeof typeOfField>[0];

/** The fields of an input that depends on the settings have a syntax of their own. */
function shapeOf({ input }: Operation): Record<string, Field> {
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

/** Throws CommandError. */
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
  { args, options }: Words,
  typed: Pick<CommandContext, "args" | "options">,
): Record<string, unknown> {
  const [, ...rest] = typed.args;
  return Object.fromEntries([
    ...args.map(({ name, syntax, parse }, index) => {
      if (syntax.endsWith("...]")) return [name, rest.slice(index)];
      return [name, parseWord(rest[index], parse)];
    }),
    ...options.flatMap(({ name, syntax, parse }) => {
      const value = typed.options[new Option(syntax).attributeName()];
      return value === undefined ? [] : [[name, parseWord(value, parse)]];
    }),
  ]);
}

function parseWord(value: unknown, parse: Word["parse"]): unknown {
  return parse && value !== undefined ? parse([value].flat().map(String)) : value;
}

/** Names the options that were typed instead of their fields. */
function toCommandError({ code, message, errors = [] }: Problem, { options }: Words): CommandError {
  const lines = errors.map(({ field, message: rule }) => {
    const [name, ...path] = field.split(".");
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
