import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { Program, runCommand, runShell, temporaryFolder } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

const folder = temporaryFolder("completion");
writeFileSync(path.join(folder, "links.csv"), "");
const installed = (await runShell("command -v bash zsh")).stdout;

// Each prints the candidates for the words of a command line whose last word is being typed, one per line.
const SHELLS: Record<string, (script: string, words: string[]) => string> = {
  bash: (script, words) => `source ${script}
complete -p linkgate | grep -q -- "-o default -F _linkgate linkgate" || exit 1
COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}) COMP_CWORD=${words.length - 1}
_linkgate
printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (script, words) => `autoload -U compinit && compinit -u -d ${folder}/zcompdump
autoload -U bashcompinit && bashcompinit
source ${script}
compadd() { print -l -r -- "$@" }
words=(${words.map((word) => `"${word}"`).join(" ")}) CURRENT=${words.length} PREFIX="${words.at(-1)}"
eval $_comps[linkgate]`,
};

// What is typed, and words that are offered for its end, and some that are not.
const LINES: [typed: string, offered: string, not: string][] = [
  ["linkgate ", "migrate org client completion help", "create --plan"],
  ["linkgate --", "--json --help --version", "org"],
  ["linkgate help ", "org init", "create"],
  ["linkgate init ", "env systemd compose", "--json"],
  ["linkgate org ", "create list fapi", "migrate rotate"],
  ["linkgate org create --", "--plan --json --help", "--overlap"],
  ["linkgate org delete org_1 --", "--reason --yes", "--plan"],
  ["linkgate org fapi org_1 ", "on off", "--json"],
  ["linkgate org plan org_1 ", "free growth premium", "--json"],
];

for (const [shell, scriptOf] of Object.entries(SHELLS)) {
  const title = `${shell} completes commands, options and arguments`;
  if (!installed.includes(`/${shell}\n`)) {
    skip(title, `there is no ${shell}`);
    continue;
  }
  test(title, async (t) => {
    const { code, stdout, stderr } = await runCommand(["completion"], { settings: { PORT: "wrong" } });
    t.is(code, 0, "needs no settings");
    t.is(stderr, "");
    const script = path.join(folder, `linkgate.${shell}`);
    writeFileSync(script, stdout);
    for (const [typed, offered, not] of LINES) {
      const args = ["-c", scriptOf(script, typed.split(" "))];
      const run = await new Program(shell, args, { settings: { HOME: folder } }).ended;
      t.is(run.stderr, "", typed);
      const candidates = run.stdout.split("\n");
      // It is left to the caller which of the words match.
      for (const word of offered.split(" ")) t.true(candidates.includes(word), `${typed} → ${word}`);
      for (const word of not.split(" ")) t.false(candidates.includes(word), `${typed} → not ${word}`);
    }
  });
}
