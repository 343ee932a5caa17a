import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { ROOT, runCommand, stopPrograms } from "../../harness/program.ts";
import { type Script, startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

export const stage = "processes";

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

const ASKED = "This can't be undone. [y/N]";

for (const [answer, keys] of Object.entries({ "no answer": "\r", n: "n\r", "Ctrl-C": "\x03" })) {
  testOnTerminal(`after ${answer}, a command that can't be undone changes nothing`, async (t) => {
    const { shown, code } = await onTerminal(["org", "delete", organizationId], [[ASKED, keys]]);
    t.is(code, 1, shown);
    t.regex(shown, new RegExp(`^Delete organization "Acme" \\(${organizationId}\\) with .*\\?\r?$`, "m"));
    t.regex(shown, /^Canceled\.\r?$/m);
    const { code: found } = await runCommand(["org", "show", organizationId, "--json"], { settings });
    t.is(found, 0);
  });
}

async function createOrganization(): Promise<string> {
  const created = await runCommand(["org", "create", "Short-lived", "--json"], { settings });
  return JSON.parse(created.stdout).organization.id;
}

testOnTerminal("a command that can't be undone runs after y, or with --yes", async (t) => {
  const agreed = await onTerminal(["org", "delete", await createOrganization()], [[ASKED, "y\r"]]);
  t.is(agreed.code, 0, agreed.shown);
  t.true(agreed.shown.includes(ASKED));
  for (const option of ["--yes", "-y"]) {
    const { shown, code } = await onTerminal(["org", "delete", await createOrganization(), option], []);
    t.is(code, 0, shown);
    t.false(shown.includes("[y/N]"));
  }
});

test("without a terminal, a command that can't be undone runs as it did", async (t) => {
  const { code, stderr } = await runCommand(["org", "delete", await createOrganization()], { settings });
  t.is(code, 0);
  t.is(stderr, "");
});

testOnTerminal("a rotation asks only if it revokes tokens", async (t) => {
  const created = await runCommand(["org", "create", "Paid", "--plan", "growth", "--json"], { settings });
  const { id } = JSON.parse(created.stdout).organization;
  const routine = await onTerminal(["client", "rotate", id], []);
  t.is(routine.code, 0, routine.shown);
  const compromised = await onTerminal(["client", "rotate", id, "--compromised"], [[ASKED, "n\r"]]);
  t.is(compromised.code, 1);
  t.regex(compromised.shown, /Revoke every token of the client of "Paid" \(org_\w+\)\?/);
});
