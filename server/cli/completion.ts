import type { Command as Program } from "commander";
import { type Command, CommandError } from "./execution/command.ts";

type Word = { name: string; summary: string };
type Option = Word & { takesValue: boolean };
type Leaf = { path: string; options: Option[]; choices: string[] };

const SHELLS: Record<string, (program: Program) => string> = { bash, zsh, fish };

/** Prints a script with which a shell completes commands and options. The program isn't run for it. */
export function completionCommand(program: Program): Command {
  return {
    name: "completion",
    summary: "Print a completion script for your shell",
    description: "Print a script that completes commands in bash, zsh or fish",
    arguments: { "<bash|zsh|fish>": "the shell" },
    example: "bash",
    describe: (result) => (result as { script: string }).script,
    async runAlone({ args: [shell] }) {
      const write = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
      if (!write) throw new CommandError("invalid_shell", "The shell must be bash, zsh or fish.");
      return { script: write(program) };
    },
  };
}

function bash(program: Program): string {
  return `# Add this line to ~/.bashrc: source <(linkgate completion bash)
_linkgate() {
  local word=\${COMP_WORDS[COMP_CWORD]} command=\${COMP_WORDS[1]} position=2 candidates=
  case $command in ${groupsOf(program).join("|")}) command+=" \${COMP_WORDS[2]}" position=3 ;; esac
  if ((COMP_CWORD == 1)); then
    candidates=${quote([...namesOf(program), "help"])}
    [[ $word == -* ]] && candidates=${quote(FIRST.map(({ name }) => name))}
  elif ((COMP_CWORD < position)); then
    case \${COMP_WORDS[1]} in
${groups(program)
  .map((group) => `      ${group.name()}) candidates=${quote(namesOf(group))} ;;`)
  .join("\n")}
    esac
  else
    case "$command $word" in
${leavesOf(program)
  .map(({ path, options }) => `      "${path} -"*) candidates=${quote(options.map(({ name }) => name))} ;;`)
  .join("\n")}
${leavesOf(program)
  .filter(({ choices }) => choices.length > 0)
  .map(({ path, choices }) => `      "${path} "*) candidates=${quote(choices)} ;;`)
  .join("\n")}
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -o default -F _linkgate linkgate`;
}

function zsh(program: Program): string {
  const list = (words: Word[]) =>
    words.map(({ name, summary }) => quote([`${name}:${summary.replaceAll(":", "\\:")}`])).join(" ");
  return `#compdef linkgate
# Add this line to ~/.zshrc, after compinit: source <(linkgate completion zsh)
_linkgate() {
  local command=$words[2] position=3
  local -a candidates
  case $command in ${groupsOf(program).join("|")}) command+=" $words[3]" position=4 ;; esac
  if ((CURRENT == 2)); then
    candidates=(${list([...wordsOf(program), HELP])})
    [[ $PREFIX == -* ]] && candidates=(${list(FIRST)})
  elif ((CURRENT < position)); then
    case $words[2] in
${groups(program)
  .map((group) => `      ${group.name()}) candidates=(${list(wordsOf(group))}) ;;`)
  .join("\n")}
    esac
  else
    case "$command $PREFIX" in
${leavesOf(program)
  .map(({ path, options }) => `      "${path} -"*) candidates=(${list(options)}) ;;`)
  .join("\n")}
${leavesOf(program)
  .filter(({ choices }) => choices.length > 0)
  .map(({ path, choices }) => `      "${path} "*) candidates=(${choices.join(" ")}) ;;`)
  .join("\n")}
    esac
  fi
  if ((\${#candidates})); then _describe linkgate candidates; else _files; fi
}
if [[ $funcstack[1] == _linkgate ]]; then _linkgate "$@"; else compdef _linkgate linkgate; fi`;
}

function fish(program: Program): string {
  const isFirst = "__fish_use_subcommand";
  const seen = (words: string) => `__fish_seen_subcommand_from ${words}`;
  const add = (condition: string, { name, summary }: Word) =>
    `complete -c linkgate -n ${quote([condition])} -a ${name} -d ${quote([summary])}`;
  const addOption = (condition: string, { name, summary, takesValue }: Option) =>
    `complete -c linkgate -n ${quote([condition])} -l ${name.slice(2)} -d ${quote([summary])}${takesValue ? " -r" : ""}`;
  return [
    "# Save this in ~/.config/fish/completions/linkgate.fish",
    ...[...wordsOf(program), HELP].map((word) => add(isFirst, word)),
    ...FIRST.map((word) => addOption(isFirst, word)),
    ...groups(program).flatMap((group) => {
      const condition = `${seen(group.name())}; and not ${seen(namesOf(group).join(" "))}`;
      return wordsOf(group).map((word) => `${add(condition, word)} -f`);
    }),
    ...leavesOf(program).flatMap(({ path, options, choices }) => {
      const condition = path.split(" ").map(seen).join("; and ");
      const lines = options.map((option) => addOption(condition, option));
      return choices.length > 0
        ? [...lines, `complete -c linkgate -n ${quote([condition])} -f -a ${quote(choices)}`]
        : lines;
    }),
  ].join("\n");
}

function groups(program: Program): Program[] {
  return program.commands.filter(({ commands }) => commands.length > 0);
}

const groupsOf = (program: Program) => groups(program).map((group) => group.name());
const namesOf = (parent: Program) => parent.commands.map((command) => command.name());

function wordsOf(parent: Program): Word[] {
  return parent.commands.map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
  }));
}

function leavesOf(program: Program): Leaf[] {
  return [...commandsOf(program), { path: "help", options: GLOBAL, choices: namesOf(program) }];
}

function commandsOf(parent: Program, path: string[] = []): Leaf[] {
  return parent.commands.flatMap((command) => {
    const own = [...path, command.name()];
    if (command.commands.length > 0) return commandsOf(command, own);
    const options = command.options.map(({ long, description, required, optional }) => ({
      name: long ?? "",
      summary: description,
      takesValue: required || optional,
    }));
    // An argument such as `<on|off>`.
    const choices = command.registeredArguments.map((each) => each.name()).find((name) => name.includes("|"));
    return [{ path: own.join(" "), options: [...options, ...GLOBAL], choices: choices?.split("|") ?? [] }];
  });
}

const GLOBAL = [
  { name: "--json", summary: "Print the result as one JSON document", takesValue: false },
  { name: "--help", summary: "Show the help", takesValue: false },
];
const FIRST = [...GLOBAL, { name: "--version", summary: "Print the version", takesValue: false }];
const HELP = { name: "help", summary: "Show the help of a command" };

/** In single quotes, as all three shells understand them. */
function quote(words: string[]): string {
  return `'${words.join(" ").replaceAll("'", "'\\''")}'`;
}
