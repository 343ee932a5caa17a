import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { addressOf, ROOT, resultOf, runCommand, startServer, stopPrograms } from "../../harness/program.ts";
import { startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-progress-"));
// Nothing may change it while it is copied.
const source = `sqlite:${folder}/source/source.sqlite`;
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
test.before(async () => {
  await resultOf(["org", "create", "Acme", "--plan", "growth"], { settings });
  // Its first start creates keys, which a rotation encrypts again.
  const server = startServer({ settings: { ...settings, PORT: "0", LOG_LEVEL: "silent" } });
  await addressOf(server);
  await server.stop();
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

/** Shows a bar at half the work, this many seconds after its beginning. */
async function barAfter(seconds: number, columns: string): Promise<string> {
  const script = `import { createProgress } from "${ROOT}server/cli/execution/progress.ts";
    let now = 0;
    performance.now = () => now;
    const show = createProgress("rows");
    show(0, 0);
    now = ${seconds * 1000};
    show(5000, 0.5);`;
  const args = ["--input-type=module", "--eval", script];
  const { shown } = await startOnTerminal(args, [], { COLUMNS: columns }).ended;
  return shown.slice(shown.lastIndexOf("\x1b[K") + 3);
}

testOnTerminal("the time left is shown after two seconds of work", async (t) => {
  t.is(await barAfter(1.9, "80"), "[##########..........] 50%, 5,000 rows, 2,632 per second");
  t.is(await barAfter(2, "80"), "[##########..........] 50%, 5,000 rows, 2,500 per second, 0:02 left");
});

testOnTerminal("a bar is cut to the width of the terminal", async (t) => {
  t.is(await barAfter(2, "40"), "[##########..........] 50%, 5,000 rows, ");
});

test("without a terminal there is no bar", async (t) => {
  const words = ["backup", `${folder}/quiet.sqlite`];
  const { code, stdout, stderr } = await runCommand(words, { settings });
  t.is(code, 0);
  t.is(stderr, "");
  t.regex(stdout, /^Backed up the database to .+quiet\.sqlite \(\d+\.\d MB\)\.\n$/);
});
