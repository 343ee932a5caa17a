import test from "ava";
import { ROOT, resultOf, runCommand, temporaryFolder } from "../../harness/program.ts";
import { commandOnTerminal, type Script, startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

const folder = temporaryFolder("terminal");
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
type Created = { organization: { id: string } };
const create = async (...words: string[]) =>
  (await resultOf<Created>(["org", "create", ...words], { settings })).organization.id;
const organizationId = await create("Acme");

const PASSWORD = "correct horse battery";
const TYPED: Script[number] = ["Password: ", `${PASSWORD}\r`];

/** Runs a command on a terminal, and types each text after its prompt. */
const onTerminal = (words: string[], ...script: Script) => commandOnTerminal(words, script, settings);

const createUser = (name: string) => ["user", "create", name, "--org", organizationId];

testOnTerminal("on a terminal, the password is prompted for twice and never shown", async (t) => {
  const { shown, code } = await onTerminal(createUser("ada"), TYPED, ["Confirm password: ", `${PASSWORD}\r`]);
  t.is(code, 0, shown);
  t.regex(shown, /username: ada/);
  t.notRegex(shown, /correct|battery/);
});

testOnTerminal("passwords that differ, Ctrl-C and Ctrl-D at the prompt create no user", async (t) => {
  const different = await onTerminal(createUser("grace"), TYPED, ["Confirm password: ", `${PASSWORD}!\r`]);
  t.is(different.code, 1);
  t.regex(different.shown, /The passwords don't match\./);
  t.notRegex(different.shown, /correct|battery/);
  for (const key of ["\x03", "\x04"]) {
    const { shown, code } = await onTerminal([...createUser("grace"), "--json"], ["Password: ", key]);
    t.is(code, 1);
    t.regex(shown, /\{"error":\{"code":"canceled","message":"Canceled\."\}\}/);
  }
  const retried = await runCommand([...createUser("grace"), "--json"], { settings }, PASSWORD);
  t.is(retried.code, 0, "the username is still free");
});

const ASKED = "This can't be undone. [y/N]";

testOnTerminal("a command that can't be undone changes nothing without a yes", async (t) => {
  for (const keys of ["\r", "n\r", "\x03"]) {
    const { shown, code } = await onTerminal(["org", "delete", organizationId], [ASKED, keys]);
    t.is(code, 1, shown);
    t.regex(shown, new RegExp(`^Delete organization "Acme" \\(${organizationId}\\) with .*\\?\r?$`, "m"));
    t.regex(shown, /^Canceled\.\r?$/m);
  }
  t.is((await runCommand(["org", "show", organizationId, "--json"], { settings })).code, 0);
});

testOnTerminal("a command that can't be undone runs after y, with --yes, or in a script", async (t) => {
  const agreed = await onTerminal(["org", "delete", await create("Short-lived")], [ASKED, "y\r"]);
  t.is(agreed.code, 0, agreed.shown);
  t.true(agreed.shown.includes(ASKED));
  for (const option of ["--yes", "-y"]) {
    const { shown, code } = await onTerminal(["org", "delete", await create("Short-lived"), option]);
    t.is(code, 0, shown);
    t.false(shown.includes("[y/N]"));
  }
  const piped = await runCommand(["org", "delete", await create("Short-lived")], { settings });
  t.like(piped, { code: 0, stderr: "" });
});

testOnTerminal("a rotation asks only if it revokes tokens", async (t) => {
  const id = await create("Paid", "--plan", "growth");
  const routine = await onTerminal(["client", "rotate", id]);
  t.is(routine.code, 0, routine.shown);
  const compromised = await onTerminal(["client", "rotate", id, "--compromised"], [ASKED, "n\r"]);
  t.is(compromised.code, 1);
  t.regex(compromised.shown, /Revoke every token of the client of "Paid" \(org_\w+\)\?/);
});

testOnTerminal("a command shows a bar on a terminal, which its result replaces", async (t) => {
  // Nothing may change a database while it is copied.
  const source = `sqlite:${folder}/source/source.sqlite`;
  await resultOf(["org", "create", "Acme"], { settings: { DATABASE_URL: source } });
  const copy = ["copy", "--from", source, "--to", `sqlite:${folder}/copy.sqlite`];
  const commands: [words: string[], unit: string][] = [
    [["backup", `${folder}/backup.sqlite`], "MB"],
    [copy, "rows"],
    [["sweep"], "rows"],
  ];
  for (const [words, unit] of commands) {
    const { shown, code } = await onTerminal(words);
    t.is(code, 0, shown);
    t.regex(shown, new RegExp(`\\r\\x1b\\[K\\[[#.]{20}\\] \\d+%, [\\d,]+ ${unit}`));
    t.regex(shown.slice(shown.lastIndexOf("\x1b[K") + 3), /^\w/);
  }
});

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

testOnTerminal("a bar is cut to the terminal, and shows the time left after two seconds", async (t) => {
  t.is(await barAfter(1.9, "80"), "[##########..........] 50%, 5,000 rows, 2,632 per second");
  t.is(await barAfter(2, "80"), "[##########..........] 50%, 5,000 rows, 2,500 per second, 0:02 left");
  t.is(await barAfter(2, "40"), "[##########..........] 50%, 5,000 rows, ");
});

test("without a terminal there is no bar", async (t) => {
  const words = ["backup", `${folder}/quiet.sqlite`];
  const { stdout, ...ending } = await runCommand(words, { settings });
  t.like(ending, { code: 0, stderr: "" });
  t.regex(stdout, /^Backed up the database to .+quiet\.sqlite \(\d+\.\d MB\)\.\n$/);
});
