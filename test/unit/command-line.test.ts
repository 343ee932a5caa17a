import test, { type ExecutionContext } from "ava";
import type { Command as Program } from "commander";
import { commands } from "../../server/cli/commands/index.ts";
import type { CommandInput } from "../../server/cli/execution/command.ts";
import { createProgram } from "../../server/cli/program.ts";
import { NAME_MAX } from "../../server/credentials/names.ts";

const NAMES = [...commands.map(({ name }) => name), "completion"];

const all = (program: Program): Program[] => [program, ...program.commands.flatMap(all)];

/** Returns what the program prints instead of running a command. */
async function printed(words: string[]): Promise<string> {
  let text = "";
  const program = createProgram(async () => {});
  for (const command of all(program)) command.configureOutput({ writeOut: (part) => (text += part) });
  await program.parseAsync(words, { from: "user" }).catch(() => {});
  return text;
}

/** The help that is printed lists commands, and fits on a terminal. */
async function lists(t: ExecutionContext, words: string[], names: string[]): Promise<void> {
  const help = await printed(words);
  for (const name of names) t.regex(help, new RegExp(`^ {2}${name}\\b`, "m"), name);
  for (const line of help.split("\n")) t.true(line.length <= 80, line);
}

test("the help lists every command", async (t) => {
  for (const words of [["--help"], ["-h"], ["help"], ["--help", "--json"]]) await lists(t, words, NAMES);
});

test("the help of a command shows the description, the options and an example", async (t) => {
  for (const name of NAMES) {
    const help = await printed([...name.split(" "), "--help"]);
    t.regex(help, new RegExp(`^Usage: linkgate ${name} `));
    t.regex(help, /^[A-Z].+$/m);
    t.regex(help, /^ {2}--json +\S/m);
    t.regex(help, new RegExp(`^Example:\\n {2}npx linkgate ${name}`, "m"));
  }
});

test("the help of a group lists its commands", async (t) => {
  for (const [group = "", names] of Map.groupBy(NAMES, (name) => name.split(" ")[0]))
    if (names[0] !== group) await lists(t, [group, "--help"], names);
});

test("the help states the longest name of an organization", async (t) => {
  t.true((await printed(["org", "create", "--help"])).includes(` 1 to ${NAME_MAX} characters\n`));
});

test("arguments and options are handed over as they are typed", async (t) => {
  const typed: [string[], CommandInput["options"]][] = [];
  const program = createProgram(async (_, args, options) => void typed.push([args, options]));
  await program.parseAsync(["--json", "org", "create", "Acme & Søns", "--plan=free"], { from: "user" });
  await program.parseAsync(["grant", "revoke", "--", "-id"], { from: "user" });
  t.deepEqual(typed, [
    [["Acme & Søns"], { plan: "free" }],
    [["-id"], {}],
  ]);
});

const UNKNOWN = "unknown_command";
const REFUSALS: [line: string, code: string, message: RegExp][] = [
  ["frobnicate", UNKNOWN, /^Unknown command "frobnicate"\.\nRun "linkgate --help" for a list of commands\.$/],
  ["org frobnicate", UNKNOWN, /^Unknown command "org frobnicate"\.\nRun "linkgate org --help" for a list /],
  ["improt", UNKNOWN, /^Unknown command "improt"\. Did you mean import\?\nRun /],
  ["org", UNKNOWN, /^Missing command\.\nRun "linkgate org --help" for a list of commands\.$/],
  ["", UNKNOWN, /^Missing command\./],
  ["org create", "usage", /^Missing required argument "name"\.\nUsage: linkgate org create <name> \[op/],
  ["org create A B", "usage", /^Unexpected argument "B"\.\nUsage: /],
  ["org create A --limit 9", "usage", /^Unknown option "--limit"\.\nUsage: linkgate org create /],
  ["org create A --pln x", "usage", /^Unknown option "--pln"\. Did you mean --plan\?\nUsage: /],
  ["org plan org_1", "usage", /^Missing required argument "free\|growth\|premium"\.\nUsage: /],
  ["completion fish", "usage", /^Unexpected argument "fish"\.\nUsage: linkgate completion \[options\]$/],
];

test("a command line that isn't one says what is wrong and what to do", async (t) => {
  for (const [line, code, message] of REFUSALS) {
    const words = line.split(" ").filter(Boolean);
    const parsing = createProgram(async () => t.fail()).parseAsync(words, { from: "user" });
    await t.throwsAsync(parsing, { code, message }, line);
  }
});
