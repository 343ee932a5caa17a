import { CommanderError, Command as Program } from "commander";
import { VERSION } from "../version.ts";
import { commands } from "./commands/index.ts";
import { completionCommand } from "./completion.ts";
import { type Command, CommandError, type CommandInput } from "./execution/command.ts";
import { print } from "./execution/output.ts";

/** The first word of a command: under which topic the help lists it, and what the commands of a group do. */
const GROUPS: Record<string, [topic: string, summary?: string]> = {
  org: ["Organizations", "Manage organizations and their plans"],
  client: ["Clients", "Manage the OAuth client of an organization"],
  app: ["Apps", "Manage which apps members of an organization may authorize"],
  trust: ["Trust rules", "Manage which CI jobs and clusters get access without a secret"],
  user: ["Users", "Manage users"],
  link: ["Links", "Show, disable and enable links of any organization"],
  grant: ["Apps", "Revoke the access of apps"],
  keys: ["Keys", "Rotate the keys of the service"],
  audit: ["Audit logs", "Verify the audit logs"],
  mcp: ["Tools", "Publish the MCP server"],
  import: ["Links"],
  listen: ["Tools"],
  login: ["Your links"],
  logout: ["Your links"],
  whoami: ["Your links"],
  links: ["Your links", "List, create, change and delete links as yourself"],
  conformance: ["Tools"],
  completion: ["Tools"],
};

type Execute = (
  command: Command,
  args: CommandInput["args"],
  options: CommandInput["options"],
) => Promise<void>;

/** Parsing throws `CommandError`, or an error that `isHelp` recognizes after printing the help or the version. */
export function createProgram(execute: Execute): Program {
  const program = configure(new Program("linkgate"))
    .description(
      "Start and administer linkgate. Commands use the same settings as the server and work while it runs.",
    )
    .usage("<command> [options]")
    .version(VERSION, "-v, --version", "print the version")
    .option("--json", "print the result as one JSON document")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText(
      "after",
      `\nRun "linkgate <command> --help" for the options of a command.\n${exampleOf("org create Acme --plan growth --json")}`,
    );
  program.configureHelp({
    showGlobalOptions: true,
    // The first screen lists every command; a group lists its own. Without a width, the names are those that a typo
    // is compared with.
    visibleCommands(parent) {
      return parent === program && this.helpWidth ? leavesOf(parent) : [...parent.commands];
    },
    subcommandTerm: nameOf,
  });
  for (const command of [...commands, completionCommand(program)]) addCommand(program, command, execute);
  return program;
}

function addCommand(program: Program, command: Command, execute: Execute): void {
  const words = command.name.split(" ");
  const name = words.pop() as string;
  const [group] = words;
  const example = exampleOf(`${command.name} ${command.example ?? ""}`);
  const leaf = configure((group ? groupOf(program, group, example) : program).command(name))
    .summary(command.summary)
    .description(command.description ?? command.summary)
    .helpGroup(`${GROUPS[group ?? name]?.[0] ?? "Server and database"}:`);
  for (const [syntax, text] of Object.entries(command.arguments ?? {})) leaf.argument(syntax, text);
  for (const [syntax, text] of Object.entries(command.options ?? {})) leaf.option(syntax, text);
  if (command.irreversible) leaf.option("-y, --yes", "skip the confirmation (scripts aren't asked)");
  leaf
    .usage([...Object.keys(command.arguments ?? {}), "[options]"].join(" "))
    .addHelpText("after", example)
    .action(() => execute(command, leaf.args as CommandInput["args"], leaf.opts()));
}

/** The example of a group is that of its first command. */
function groupOf(program: Program, name: string, example: string): Program {
  const existing = program.commands.find((command) => command.name() === name);
  if (existing) return existing;
  const [topic = "", summary = ""] = GROUPS[name] ?? [];
  return configure(program.command(name))
    .description(summary)
    .helpGroup(`${topic}:`)
    .usage("<command> [options]")
    .helpCommand(false)
    .addHelpText("after", example);
}

/** The library would print errors before it exits. */
function configure(command: Program): Program {
  return command
    .helpOption("-h, --help", "show this help")
    .configureOutput({ writeOut: (text) => print(text), writeErr() {}, outputError() {} })
    .exitOverride((error) => {
      throw toCommandError(error, command);
    });
}

function toCommandError(error: CommanderError, command: Program): Error {
  if (error.exitCode === 0) return error; // the help or the version was printed
  const { args, registeredArguments } = command;
  const [, suggestion] = /\n\((Did you mean .*\?)\)$/.exec(error.message) ?? [];
  const end = suggestion ? ` ${suggestion}` : "";
  const unknown = (word = "") => `Unknown command "${wordsOf(nameOf(command), word)}".${end}`;
  switch (error.code) {
    case "commander.help": // `linkgate help <word>` ends here, too
      return unknownCommand(args[0] === "help" ? unknown(args[1]) : "Missing command.", command);
    case "commander.unknownCommand":
      return unknownCommand(unknown(args[0]), command);
    case "commander.excessArguments":
      return usageError(`Unexpected argument "${args[registeredArguments.length]}".`, command);
  }
  const sentence = error.message
    .replace(/\n\(Did you mean .*$/, "")
    .replace(/^error: ./, (start) => start.slice(-1).toUpperCase())
    .replaceAll("'", '"')
    .replace(/[^.)]$/, "$&.");
  return usageError(`${sentence}${end}`, command);
}

function unknownCommand(sentence: string, command: Program): CommandError {
  const help = wordsOf("linkgate", nameOf(command), "--help");
  return new CommandError("unknown_command", `${sentence}\nRun "${help}" for a list of commands.`);
}

function usageError(sentence: string, command: Program): CommandError {
  const usage = wordsOf("linkgate", nameOf(command), command.usage());
  return new CommandError("usage", `${sentence}\nUsage: ${usage}`);
}

export function isHelp(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

function leavesOf(command: Program): Program[] {
  return command.commands.flatMap((child) => (child.commands.length > 0 ? leavesOf(child) : [child]));
}

function nameOf(command: Program): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}`.trim() : "";
}

function wordsOf(...words: string[]): string {
  return words.filter(Boolean).join(" ");
}

function exampleOf(words: string): string {
  return `\nExample:\n  npx linkgate ${words.trim()}`;
}
