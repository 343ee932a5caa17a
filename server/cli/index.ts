import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { openStorage } from "../adapters/index.ts";
import { clientCommands } from "./commands/clients.ts";
import { type Command, CommandError, wordsOf } from "./commands/command.ts";
import { hasFailed, maintenanceCommands } from "./commands/maintenance.ts";
import { organizationCommands } from "./commands/organizations.ts";
import { userCommands } from "./commands/users.ts";
import { readSettings, WrongSettings } from "./config.ts";
import { encryptionKey } from "./encryption.ts";

const commands: Command[] = [
  ...maintenanceCommands,
  ...organizationCommands,
  ...clientCommands,
  ...userCommands,
];

/** The administration command: one answer on stdout, exit 0; or one error on stderr, exit 1. */
async function main(argv: string[]): Promise<void> {
  const isJson = argv.includes("--json");
  const words = argv.filter((word) => word !== "--json");
  const asksForHelp = words[0] === "help" || words.includes("--help");
  if (asksForHelp || (words.length === 0 && !isJson)) return console.log(help());
  try {
    const answer = await run(words);
    console.log(isJson ? JSON.stringify(answer) : toLines(answer).join("\n"));
    if (hasFailed(answer)) process.exitCode = 1;
  } catch (error) {
    process.exitCode = 1;
    const { code, message } = explain(error as Error);
    console.error(isJson ? JSON.stringify({ error: { code, message } }) : message);
  }
}

async function run(words: string[]): Promise<object> {
  const command = commands.find((candidate) =>
    wordsOf(candidate).every((word, index) => words[index] === word),
  );
  if (!command) throw new CommandError("unknown_command", `there is no such command.\n${help()}`);
  const { values, positionals } = readArguments(command, words.slice(wordsOf(command).length));
  const settings = readSettings();
  const storage = openStorage(settings.DATABASE_URL, encryptionKey(settings));
  try {
    if (command.migrates) await storage.migrate();
    return await command.run({
      args: positionals,
      options: values,
      settings,
      storage,
      readStdin: () => text(process.stdin),
    });
  } finally {
    await storage.close();
  }
}

function readArguments(command: Command, args: string[]) {
  try {
    const { values, positionals } = parseArgs({
      args,
      options: command.options ?? {},
      allowPositionals: true,
    });
    const { least, most } = command.arguments;
    if (positionals.length < least || positionals.length > most)
      throw new TypeError("wrong number of arguments");
    return { values: values as Record<string, string | boolean | undefined>, positionals };
  } catch (error) {
    throw new CommandError("usage", `${(error as Error).message}\nusage: ${command.usage}`);
  }
}

function explain(error: Error): { code: string; message: string } {
  if (error instanceof CommandError) return { code: error.code, message: error.message };
  if (error instanceof WrongSettings) return { code: "wrong_settings", message: error.message };
  if (error.name === "WrongEncryptionKey") return { code: "wrong_encryption_key", message: error.message };
  return { code: "failed", message: error.message };
}

function help(): string {
  const width = Math.max(...commands.map(({ usage }) => usage.length));
  const lines = commands.map(({ usage, summary }) => `  ${usage.padEnd(width)}  ${summary}`);
  return ["npm run --silent linkgate -- <command> [--json]", "", ...lines].join("\n");
}

/** An answer for people: one `name: value` per line, lists indented. */
function toLines(value: object, indent = ""): string[] {
  return Object.entries(value).flatMap(([name, item]) => {
    if (item === null || item === undefined) return [`${indent}${name}: -`];
    if (typeof item !== "object") return [`${indent}${name}: ${item}`];
    const inner = toLines(item, `${indent}  `);
    return Array.isArray(value)
      ? [`${indent}-`, ...inner]
      : [`${indent}${name}:${inner.length ? "" : " none"}`, ...inner];
  });
}

await main(process.argv.slice(2));
