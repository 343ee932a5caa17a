import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { ROOT, runCommand, stopPrograms } from "../../harness/program.ts";
import { type Script, startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-terminal-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const { stdout } = await runCommand(["org", "create", "Acme", "--json"], { settings });
const organizationId = JSON.parse(stdout).organization.id as string;
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const PASSWORD = "correct horse battery";

/** Runs a command of the CLI on a terminal, and types each text after its prompt. */
const onTerminal = (words: string[], script: Script) =>
  startOnTerminal([`${ROOT}server/cli/linkgate.js`, ...words], script, settings).ended;

const createUser = (name: string) => ["user", "create", name, "--org", organizationId];

testOnTerminal("on a terminal, the password is prompted for twice and never shown", async (t) => {
  const { shown, code } = await onTerminal(createUser("ada"), [
    ["Password: ", `${PASSWORD}\r`],
    ["Confirm password: ", `${PASSWORD}\r`],
  ]);
  t.is(code, 0, shown);
  t.regex(shown, /username: ada/);
  t.notRegex(shown, /correct|battery/);
});

testOnTerminal("two passwords that differ create no user", async (t) => {
  const { shown, code } = await onTerminal(createUser("grace"), [
    ["Password: ", `${PASSWORD}\r`],
    ["Confirm password: ", `${PASSWORD}!\r`],
  ]);
  t.is(code, 1);
  t.regex(shown, /The passwords don't match\./);
  t.notRegex(shown, /correct|battery/);
  const retried = await runCommand([...createUser("grace"), "--json"], { settings }, PASSWORD);
  t.is(retried.code, 0, "the username is still free");
});

for (const [name, key] of [
  ["Ctrl-C", "\x03"],
  ["Ctrl-D", "\x04"],
] as const) {
  testOnTerminal(`${name} at the password prompt cancels the command`, async (t) => {
    const { shown, code } = await onTerminal([...createUser("mallory"), "--json"], [["Password: ", key]]);
    t.is(code, 1);
    t.regex(shown, /\{"error":\{"code":"canceled","message":"Canceled\."\}\}/);
  });
}

testOnTerminal("a password that is too short is rejected on a terminal as well", async (t) => {
  const { shown, code } = await onTerminal(
    [...createUser("mallory"), "--json"],
    [
      ["Password: ", "short\r"],
      ["Confirm password: ", "short\r"],
    ],
  );
  t.is(code, 1);
  t.regex(shown, /"code":"invalid_password"/);
});
