import type { Command as Program } from "commander";
import type { Command } from "./execution/command.ts";

/** Prints a script with which a shell completes commands and options. The program isn't run for it. */
export function completionCommand(program: Program): Command {
  return {
    name: "completion",
    summary: "Print a completion script for your shell",
    description: "Print a script that completes commands in bash and zsh",
    describe: (result) => (result as { script: string }).script,
    runAlone: async () => ({ script: scriptOf(program) }),
  };
}

function scriptOf(program: Program): string {
  return `# bash: add this line to ~/.bashrc: source <(linkgate completion)
# zsh: add these lines to ~/.zshrc, after compinit:
#   autoload -U bashcompinit && bashcompinit
#   source <(linkgate completion)
_linkgate() {
  local word=\${COMP_WORDS[COMP_CWORD]} typed="\${COMP_WORDS[*]:0:$COMP_CWORD} " candidates=
  typed=\${typed#* }
  [[ $word == -* ]] && typed="- $typed"
  case "$typed" in
${linesOf(program).join("\n")}
    "help "*) candidates='${commandsOf(program)}' ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
}
complete -o default -F _linkgate linkgate`;
}

/** The branches of a command and those below it. After a hyphen, an option is being typed. */
function linesOf(command: Program, typed = ""): string[] {
  const { commands, registeredArguments } = command;
  const help = command.createHelp();
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  // An argument such as `<on|off>`.
  const choices = registeredArguments.map((argument) => argument.name()).find((name) => name.includes("|"));
  const words = commands.length > 0 ? commandsOf(command) : choices?.replaceAll("|", " ");
  const rest = commands.length > 0 ? "" : "*";
  return [
    `    "${typed}"${rest}) candidates='${words ?? ""}' ;;`,
    `    "- ${typed}"${rest}) candidates='${options.map(({ long }) => long).join(" ")}' ;;`,
    ...commands.flatMap((child) => linesOf(child, `${typed}${child.name()} `)),
  ];
}

function commandsOf(parent: Program): string {
  return [...parent.commands.map((command) => command.name()), ...(parent.parent ? [] : ["help"])].join(" ");
}
