import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { Program, runCommand, runShell, stopPrograms } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-completion-"));
writeFileSync(path.join(folder, "links.csv"), "");
const installed = (await runShell("command -v bash zsh fish")).stdout;
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

// Each prints the candidates for the words of a command line whose last word is being typed, one per line.
const SHELLS: Record<string, (script: string, words: string[]) => string> = {
  bash: (script, words) => `source ${script}
complete -p linkgate | grep -q -- "-o default -F _linkgate linkgate" || exit 1
COMP_WORDS=(${words.map((word) => `"${word}"`).join(" ")}) COMP_CWORD=${words.length - 1}
_linkgate
printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (script, words) => `autoload -U compinit && compinit -u -d ${folder}/zcompdump
source ${script}
[[ $_comps[linkgate] == _linkgate ]] || exit 1
_describe() { for candidate in "\${(@P)2}"; do print -r -- "\${candidate%%:*}"; done }
_files() { ls }
words=(${words.map((word) => `"${word}"`).join(" ")}) CURRENT=${words.length} PREFIX="${words.at(-1)}"
_linkgate`,
  fish: (script, words) => `source ${script}
complete -C '${words.join(" ")}' | string split -f 1 \\t`,
};

const LINES: [typed: string[], offered: string[], not: string[]][] = [
  [
    ["linkgate", ""],
    ["migrate", "org", "client", "completion", "help"],
    ["create", "--plan"],
  ],
  [["linkgate", "--"], ["--json", "--help", "--version"], ["org"]],
  [["linkgate", "help", ""], ["org", "init"], ["create"]],
  [["linkgate", "init", ""], ["env", "systemd", "compose"], ["--json"]],
  [
    ["linkgate", "org", ""],
    ["create", "list", "fapi"],
    ["migrate", "rotate"],
  ],
  [["linkgate", "org", "create", "--"], ["--plan", "--json", "--help"], ["--overlap"]],
  [["linkgate", "org", "delete", "org_1", "--"], ["--reason", "--yes"], ["--plan"]],
  [["linkgate", "org", "fapi", "org_1", ""], ["on", "off"], ["--json"]],
  [["linkgate", "org", "plan", "org_1", ""], ["free", "growth", "premium"], ["--json"]],
  [["linkgate", "completion", ""], ["bash", "zsh", "fish"], ["org"]],
  [["linkgate", "init", ""], ["env", "systemd", "compose"], ["org"]],
];

for (const [shell, scriptOf] of Object.entries(SHELLS)) {
  const title = `${shell} completes commands, options and arguments`;
  if (!installed.includes(`/${shell}\n`)) {
    skip(title, `there is no ${shell}`);
    continue;
  }
  test(title, async (t) => {
    const { code, stdout, stderr } = await runCommand(["completion", shell], { settings: { PORT: "wrong" } });
    t.is(code, 0, "needs no settings");
    t.is(stderr, "");
    const script = path.join(folder, `linkgate.${shell}`);
    writeFileSync(script, stdout);
    for (const [words, offered, not] of LINES) {
      const run = await new Program(shell, ["-c", scriptOf(script, words)], { settings: { HOME: folder } })
        .ended;
      t.is(run.stderr, "", words.join(" "));
      const candidates = run.stdout.split("\n");
      // bash and zsh leave it to the caller which of the words match.
      for (const word of offered) t.true(candidates.includes(word), `${words.join(" ")} → ${word}`);
      for (const word of not) t.false(candidates.includes(word), `${words.join(" ")} → not ${word}`);
    }
  });
}

test("another shell is refused", async (t) => {
  const { code, stderr } = await runCommand(["completion", "cmd", "--json"], {});
  t.is(code, 1);
  t.is(JSON.parse(stderr).error.code, "invalid_shell");
});
