import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { parseEnv } from "node:util";
import test from "ava";
import { ROOT, runCommand, temporaryFolder } from "../../harness/program.ts";
import { commandOnTerminal, type Script, testOnTerminal } from "../../harness/terminal.ts";

const SETTING = /`([A-Z][A-Z_]+)`/g;
const documented = readFileSync(`${ROOT}docs/settings.md`, "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .flatMap((row) => [...(row.split(" | ")[0] ?? "").matchAll(SETTING)].map(([, name]) => name));

async function init(words: string[], folder = temporaryFolder("init")) {
  const { code, stderr } = await runCommand(["init", ...words], { cwd: folder });
  return { code, stderr, folder, read: (file: string) => readFileSync(`${folder}/${file}`, "utf8") };
}

const CHOICES = ["--registration", "invite", "--self-service-plans", "off"];
const CHOSEN = ["REGISTRATION", "SELF_SERVICE_PLANS"];
const TARGETS: [words: string[], files: string[], settings: string[]][] = [
  [[], [".env"], []],
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
    t.is(statSync(`${folder}/${file}`).mode & 0o777, 0o600);
    const written = parseEnv(read(file));
    t.deepEqual(Object.keys(written).toSorted(), settings);
    if (words.includes("off")) t.like(written, { REGISTRATION: "invite", SELF_SERVICE_PLANS: "off" });
    t.true(documented.length > 30);
    for (const name of documented) t.regex(read(file), new RegExp(`^#?${name}=`, "m"));
  });

test("init adds what is missing to files that exist, and changes no setting", async (t) => {
  const { folder, read } = await init(["compose", ...CHOICES]);
  const { ENCRYPTION_KEY } = parseEnv(read(".env"));
  rmSync(`${folder}/compose.yaml`);
  const again = await init(["compose"], folder); // the choices are in the file
  t.is(again.code, 0, again.stderr);
  t.true(readdirSync(folder).includes("compose.yaml"));
  t.like(parseEnv(read(".env")), { ENCRYPTION_KEY });

  writeFileSync(`${folder}/.env`, "PORT=4000");
  const third = await init(["compose", ...CHOICES], folder);
  t.is(third.code, 0, third.stderr);
  const settings = ["BASE_URL", "ENCRYPTION_KEY", "PORT", "POSTGRES_PASSWORD", ...CHOSEN];
  t.deepEqual(Object.keys(parseEnv(read(".env"))).toSorted(), settings);
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
  [["docker"], "The target must be env, systemd or compose."],
  [["constructor"], "The target must be env, systemd or compose."],
];
test("without a terminal, init refuses what it can't ask for, and writes nothing", async (t) => {
  for (const [words, message] of REFUSED) {
    const { code, stderr, folder } = await init(words);
    t.deepEqual([code, stderr], [1, `${message}\n`]);
    t.deepEqual(readdirSync(folder), []);
  }
});

testOnTerminal("on a terminal, init asks what production requires", async (t) => {
  const folder = temporaryFolder("init");
  const script: Script = [
    ["open, invite or closed? ", "closed\r"],
    ["on or off? ", "off\r"],
  ];
  const { shown, code } = await commandOnTerminal(["init", "systemd"], script, {}, folder);
  t.is(code, 0, shown);
  t.regex(shown, /REGISTRATION\r\n {2}open +everyone can create an account/);
  const written = parseEnv(readFileSync(`${folder}/linkgate.env`, "utf8"));
  t.like(written, { REGISTRATION: "closed", SELF_SERVICE_PLANS: "off" });
});
