import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import { Program, ROOT, runCommand, runShell, stopPrograms } from "../../harness/program.ts";
import { skip } from "../../harness/skip.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-terminal-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };
const { stdout } = await runCommand(["org", "create", "Acme", "--json"], { settings });
const organizationId = JSON.parse(stdout).organization.id as string;
const hasPython = (await runShell("python3 -c 'import pty'")).code === 0;
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const PASSWORD = "correct horse battery";

/** Runs a command on a pseudo-terminal and types each text after its prompt. */
async function onTerminal(words: string[], script: [prompt: string, keys: string][]) {
  const command = [process.execPath, `${ROOT}server/cli/linkgate.js`, ...words];
  const args = [`${ROOT}test/harness/terminal.py`, JSON.stringify(command), JSON.stringify(script)];
  const ended = await new Program("python3", args, { settings }).ended;
  return JSON.parse(ended.stdout) as { shown: string; code: number };
}

const createUser = (name: string) => ["user", "create", name, "--org", organizationId];

function testOnTerminal(title: string, run: (t: ExecutionContext) => Promise<void>) {
  if (hasPython) test(title, run);
  else skip(title, "there is no python3");
}

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
