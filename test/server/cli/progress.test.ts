import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { ROOT, resultOf, runCommand, stopPrograms } from "../../harness/program.ts";
import { startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-progress-"));
// Nothing may change it while it is copied.
const source = `sqlite:${folder}/source/source.sqlite`;
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
test.before(async () => {
  await resultOf(["org", "create", "Acme", "--plan", "growth"], { settings });
  await resultOf(["org", "create", "Acme"], { settings: { DATABASE_URL: source } });
});
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const COMMANDS: [words: string[], unit: string][] = [
  [["sweep"], "rows"],
  [["backup", `${folder}/backup.sqlite`], "MB"],
  [["copy", "--from", source, "--to", `sqlite:${folder}/copy.sqlite`], "rows"],
  [["keys", "rotate", "encryption"], "values"],
];

for (const [words, unit] of COMMANDS) {
  testOnTerminal(`${words[0]} shows a bar on a terminal, which its result replaces`, async (t) => {
    const { shown, code } = await startOnTerminal([`${ROOT}server/cli/linkgate.js`, ...words], [], settings)
      .ended;
    t.is(code, 0, shown);
    t.regex(shown, new RegExp(`\\r\\x1b\\[K\\[[#.]{20}\\] \\d+%, [\\d,]+ ${unit}`));
    const afterLastBar = shown.slice(shown.lastIndexOf("\x1b[K") + 3);
    t.regex(afterLastBar, /^\w/);
  });
}

test("without a terminal there is no bar", async (t) => {
  const words = ["backup", `${folder}/quiet.sqlite`];
  const { code, stdout, stderr } = await runCommand(words, { settings });
  t.is(code, 0);
  t.is(stderr, "");
  t.regex(stdout, /^Backed up the database to .+quiet\.sqlite \(\d+\.\d MB\)\.\n$/);
});
