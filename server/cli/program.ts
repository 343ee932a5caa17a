import { CommanderError, Command as Program } from "commander";
import { VERSION } from "../version.ts";
import { commands } from "./commands/index.ts";
import { completionCommand } from "./completion.ts";
import { type Command, CommandError, type CommandInput, EXAMPLE_ORG } from "./execution/command.ts";

const GROUPS: Record<string, { summary: string; example: string }> = {
  org: { summary: "Manage organizations and their plans", example: "org list" },
  client: {
    summary: "Manage the OAuth client of an organization",
    example: `client rotate ${EXAMPLE_ORG}`,
  },
  app: {
    summary: "Manage which apps members of an organization may authorize",
    example: `app list ${EXAMPLE_ORG}`,
  },
  trust: {
    summary: "Manage which CI jobs and clusters get access without a secret",
    example: `trust list ${EXAMPLE_ORG}`,
  },
  user: { summary: "Manage users", example: "user reset-password ada" },
  link: { summary: "Show, disable and enable links of any organization", example: "link show spring" },
  grant: {
    summary: "Revoke the access of apps",
    example: "grant revoke Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
  },
  keys: { summary: "Rotate the keys of the service", example: "keys rotate signing" },
  audit: { summary: "Verify the audit logs", example: "audit verify" },
  mcp: { summary: "Publish the MCP server", example: "mcp server-json" },
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
    .version(VERSION, "-v, --version", "Print the version")
    .option("--json", "Print the result as one JSON document")
    .helpCommand("help [command]", "Show the help of a command")
    .addHelpText("after", exampleOf("org create Acme --plan growth --json"));
  program.configureHelp({
    showGlobalOptions: true,
    // The first screen lists every command; a group lists its own.
    visibleCommands: (parent) => (parent === program ? leavesOf(parent) : [...parent.commands]),
    subcommandTerm: (command) => `${nameOf(command)} ${command.usage()}`,
  });
  for (const command of [...commands, completionCommand(program)]) addCommand(program, command, execute);
  return program;
}

function addCommand(program: Program, command: Command, execute: Execute): void {
  const words = command.name.split(" ");
  const name = words.pop() as string;
  const parent = words[0] ? groupOf(program, words[0]) : program;
  const leaf = configure(parent.command(name)).description(command.summary);
  for (const [syntax, text] of Object.entries(command.arguments ?? {})) leaf.argument(syntax, text);
  for (const [syntax, text] of Object.entries(command.options ?? {})) leaf.option(syntax, text);
  if (command.irreversible) leaf.option("-y, --yes", "don't ask before what can't be undone");
  leaf
    .usage([...Object.keys(command.arguments ?? {}), "[options]"].join(" "))
    .addHelpText("after", exampleOf(`${command.name} ${command.example ?? ""}`))
    .action(() => execute(command, leaf.args as CommandInput["args"], leaf.opts()));
}

function groupOf(program: Program, name: string): Program {
  const existing = program.commands.find((command) => command.name() === name);
  if (existing) return existing;
  const { summary = "", example = "" } = GROUPS[name] ?? {};
  return configure(program.command(name))
    .description(summary)
    .usage("<command> [options]")
    .helpCommand(false)
    .addHelpText("after", exampleOf(example));
}

/** The library would print errors before it exits. */
function configure(command: Program): Program {
  return command
    .helpOption("-h, --help", "Show this help")
    .configureOutput({ writeErr() {}, outputError() {} })
    .exitOverride((error) => {
      throw toCommandError(error, command);
    })
    .on("command:*", ([word]: string[]) => {
      const words = [nameOf(command), word].filter(Boolean).join(" ");
      throw new CommandError("unknown_command", `Unknown command "${words}".\n${seeHelp(command)}`);
    });
}

function toCommandError(error: CommanderError, command: Program): Error {
  if (error.exitCode === 0) return error; // the help or the version was printed
  if (error.code === "commander.help")
    return new CommandError("unknown_command", `Missing command.\n${seeHelp(command)}`);
  const sentence = error.message
    .replace(/^error: ./, (start) => start.slice(-1).toUpperCase())
    .replaceAll("'", '"')
    .replace(/[^.)]$/, "$&.");
  return new CommandError(
    "usage",
    `${sentence}\nUsage: linkgate ${nameOf(command)} ${command.usage()}`.trim(),
  );
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

function seeHelp(command: Program): string {
  return `Run "${["linkgate", nameOf(command), "--help"].filter(Boolean).join(" ")}" for a list of commands.`;
}

function exampleOf(words: string): string {
  return `\nExample:\n  npx linkgate ${words.trim()}`;
}
