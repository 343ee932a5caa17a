import type { Command as Program } from "commander";
import { type Command, CommandError } from "./execution/command.ts";

type Candidate = { name: string; summary: string; takesValue?: boolean };
/** What can follow the words that were typed. `rest` is a pattern for further ones. */
type Line = { typed: string; rest: "" | "*"; words: Candidate[]; options: Candidate[] };

const SHELLS: Record<string, (lines: Line[]) => string> = { bash, zsh, fish };

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
      const help: Line = { typed: "help ", rest: "*", words: commandsOf(program), options: [] };
      return { script: write([...linesOf(program), help]) };
    },
  };
}

function bash(lines: Line[]): string {
  const list = (candidates: Candidate[]) => quote(candidates.map(({ name }) => name).join(" "));
  return `# Add this line to ~/.bashrc: source <(linkgate completion bash)
_linkgate() {
  local word=\${COMP_WORDS[COMP_CWORD]} typed=(linkgate "\${COMP_WORDS[@]:1:COMP_CWORD-1}") candidates=
  [[ $word == -* ]] && typed[0]=-
  case "\${typed[*]} " in
${casesOf(lines, list)}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -o default -F _linkgate linkgate`;
}

function zsh(lines: Line[]): string {
  const list = (candidates: Candidate[]) =>
    `(${candidates.map(({ name, summary }) => quote(`${name}:${summary.replaceAll(":", "\\:")}`)).join(" ")})`;
  return `#compdef linkgate
# Add this line to ~/.zshrc, after compinit: source <(linkgate completion zsh)
_linkgate() {
  local -a candidates typed=(linkgate $words[2,CURRENT-1])
  [[ $PREFIX == -* ]] && typed[1]=-
  case "$typed " in
${casesOf(lines, list)}
  esac
  if ((\${#candidates})); then _describe linkgate candidates; else _files; fi
}
if [[ $funcstack[1] == _linkgate ]]; then _linkgate "$@"; else compdef _linkgate linkgate; fi`;
}

/** In bash and zsh, a hyphen in place of the program's name stands for an option that is being typed. */
function casesOf(lines: Line[], list: (candidates: Candidate[]) => string): string {
  const branches = lines.flatMap(({ typed, rest, words, options }) => [
    { pattern: `"linkgate ${typed}"${rest}`, candidates: words },
    { pattern: `"- ${typed}"${rest}`, candidates: options },
  ]);
  return branches
    .filter(({ candidates }) => candidates.length > 0)
    .map(({ pattern, candidates }) => `    ${pattern}) candidates=${list(candidates)} ;;`)
    .join("\n");
}

function fish(lines: Line[]): string {
  return `# Save this in ~/.config/fish/completions/linkgate.fish
function __linkgate_typed
  set -l typed (commandline -opc)
  set typed[1] linkgate
  string match -q -- $argv[1] "$typed "
end
${lines
  .flatMap(({ typed, rest, words, options }) => {
    const start = `complete -c linkgate -n ${quote(`__linkgate_typed "linkgate ${typed}${rest}"`)}`;
    return [
      ...words.map(({ name, summary }) => `${start} -f -a ${name} -d ${quote(summary)}`),
      ...options.map(
        ({ name, summary, takesValue }) =>
          `${start} -l ${name.slice(2)} -d ${quote(summary)}${takesValue ? " -r" : ""}`,
      ),
    ];
  })
  .join("\n")}`;
}

function linesOf(command: Program, typed = ""): Line[] {
  const help = command.createHelp();
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)].map(
    ({ long, description, required, optional }) => ({
      name: long ?? "",
      summary: description,
      takesValue: required || optional,
    }),
  );
  const { commands, registeredArguments } = command;
  if (commands.length > 0) {
    const nested = commands.flatMap((child) => linesOf(child, `${typed}${child.name()} `));
    return [{ typed, rest: "", words: commandsOf(command), options }, ...nested];
  }
  // An argument such as `<on|off>`.
  const choices = registeredArguments.map((argument) => argument.name()).find((name) => name.includes("|"));
  const words = choices?.split("|").map((name) => ({ name, summary: "" })) ?? [];
  return [{ typed, rest: "*", words, options }];
}

function commandsOf(parent: Program): Candidate[] {
  const commands = parent.commands.map((command) => ({
    name: command.name(),
    summary: command.summary() || command.description(),
  }));
  return parent.parent ? commands : [...commands, { name: "help", summary: "show the help of a command" }];
}

/** In single quotes, as all three shells understand them. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
