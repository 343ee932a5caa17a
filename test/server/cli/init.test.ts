import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseEnv } from "node:util";
import test from "ava";
import { ROOT, runCommand, stopPrograms } from "../../harness/program.ts";
import { type Script, startOnTerminal, testOnTerminal } from "../../harness/terminal.ts";

export const stage = "processes";

const folders = mkdtempSync(path.join(tmpdir(), "linkgate-init-"));
test.after.always(stopPrograms);
test.after.always(() => rmSync(folders, { recursive: true, force: true }));

const SETTING = /`([A-Z][A-Z_]+)`/g;
const documented = readFileSync(`${ROOT}docs/settings.md`, "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .flatMap((row) => [...(row.split(" | ")[0] ?? "").matchAll(SETTING)].map(([, name]) => name));

/** Runs `linkgate init` in a new folder, or in this one. */
async function init(words: string[], folder = mkdtempSync(`${folders}/`)) {
  const { code, stderr } = await runCommand(["init", ...words], { cwd: folder });
  return { code, stderr, folder, read: (file: string) => readFileSync(path.join(folder, file), "utf8") };
}

const CHOICES = ["--registration", "invite", "--self-service-plans", "off"];
const CHOSEN = ["REGISTRATION", "SELF_SERVICE_PLANS"];
const TARGETS: [words: string[], files: string[], settings: string[]][] = [
  [[], [".env"], []],
  [["env"], [".env"], []],
  [["env", ...CHOICES], [".env"], CHOSEN],
  [
    ["systemd", ...CHOICES],
    ["linkgate.env", "linkgate.service"],
    ["BASE_URL", "DATABASE_URL", ...CHOSEN, "TRUST_PROXY"],
  ],
  [
    ["compose", ...CHOICES],
    [".env", "Containerfile", "compose.yaml"],
    ["BASE_URL", "ENCRYPTION_KEY", "POSTGRES_PASSWORD", ...CHOSEN],
  ],
];
for (const [words, files, settings] of TARGETS)
  test(`init ${words.join(" ")} writes ${files.join(", ")}, with every setting`, async (t) => {
    const { code, stderr, folder, read } = await init(words);
    t.is(code, 0, stderr);
    t.deepEqual(readdirSync(folder).toSorted(), files);
    const file = files.find((name) => name.endsWith(".env")) ?? "";
    t.is(statSync(path.join(folder, file)).mode & 0o777, 0o600);
    const written = parseEnv(read(file));
    t.deepEqual(Object.keys(written).toSorted(), settings);
    if (words.includes("off")) t.like(written, { REGISTRATION: "invite", SELF_SERVICE_PLANS: "off" });
    t.true(documented.length > 30);
    for (const name of documented) t.regex(read(file), new RegExp(`^#?${name}=`, "m"));
  });

test("init adds what is missing to files that exist, and changes no setting", async (t) => {
  const { folder, read } = await init(["compose", ...CHOICES]);
  const { ENCRYPTION_KEY } = parseEnv(read(".env"));
  rmSync(path.join(folder, "compose.yaml"));
  const again = await init(["compose"], folder); // the choices are in the file
  t.is(again.code, 0, again.stderr);
  t.true(readdirSync(folder).includes("compose.yaml"));
  t.like(parseEnv(read(".env")), { ENCRYPTION_KEY });

  writeFileSync(path.join(folder, ".env"), "PORT=4000");
  const third = await init(["compose", ...CHOICES], folder);
  t.is(third.code, 0, third.stderr);
  t.deepEqual(Object.keys(parseEnv(read(".env"))).toSorted(), [
    "BASE_URL",
    "ENCRYPTION_KEY",
    "PORT",
    "POSTGRES_PASSWORD",
    "REGISTRATION",
    "SELF_SERVICE_PLANS",
  ]);
  t.true(read(".env").startsWith("PORT=4000\n"));
  for (const name of documented) t.is(read(".env").match(new RegExp(`^#?${name}=`, "gm"))?.length, 1, name);

  const before = read(".env");
  t.is((await init(["compose"], folder)).code, 0);
  t.is(read(".env"), before);
});

const REFUSED: [words: string[], message: string][] = [
  [["compose"], "Missing option --registration <open|invite|closed>."],
  [["systemd", "--registration", "open"], "Missing option --self-service-plans <on|off>."],
  [["env", "--registration", "maybe"], "REGISTRATION must be open, invite or closed."],
];
for (const [words, message] of REFUSED)
  test(`without a terminal, init ${words.join(" ")} is refused and writes nothing`, async (t) => {
    const { code, stderr, folder } = await init(words);
    t.is(code, 1);
    t.is(stderr, `${message}\n`);
    t.deepEqual(readdirSync(folder), []);
  });

testOnTerminal("on a terminal, init asks what production requires", async (t) => {
  const folder = mkdtempSync(`${folders}/`);
  const script: Script = [
    ["open, invite or closed? ", "closed\r"],
    ["on or off? ", "off\r"],
  ];
  const { shown, code } = await startOnTerminal(
    [`${ROOT}server/cli/linkgate.js`, "init", "systemd"],
    script,
    {},
    folder,
  ).ended;
  t.is(code, 0, shown);
  t.regex(shown, /REGISTRATION\r\n {2}open +everyone can create an account/);
  const written = parseEnv(readFileSync(path.join(folder, "linkgate.env"), "utf8"));
  t.like(written, { REGISTRATION: "closed", SELF_SERVICE_PLANS: "off" });
});

for (const target of ["docker", "constructor"])
  test(`init ${target} is refused`, async (t) => {
    const { code, stderr, folder } = await init([target]);
    t.is(code, 1);
    t.is(stderr, "The target must be env, systemd or compose.\n");
    t.deepEqual(readdirSync(folder), []);
  });
