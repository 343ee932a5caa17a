import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseEnv } from "node:util";
import test from "ava";
import { ROOT, runCommand, stopPrograms } from "../../harness/program.ts";

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

const TARGETS: [words: string[], files: string[], settings: string[]][] = [
  [[], [".env"], []],
  [["env"], [".env"], []],
  [["systemd"], ["linkgate.env", "linkgate.service"], ["BASE_URL", "DATABASE_URL", "TRUST_PROXY"]],
  [
    ["compose"],
    [".env", "Containerfile", "compose.yaml"],
    ["BASE_URL", "ENCRYPTION_KEY", "POSTGRES_PASSWORD"],
  ],
];
for (const [words, files, settings] of TARGETS)
  test(`init ${words.join(" ")} writes ${files.join(", ")}, with every setting`, async (t) => {
    const { code, stderr, folder, read } = await init(words);
    t.is(code, 0, stderr);
    t.deepEqual(readdirSync(folder).toSorted(), files);
    const file = files.find((name) => name.endsWith(".env")) ?? "";
    t.is(statSync(path.join(folder, file)).mode & 0o777, 0o600);
    t.deepEqual(Object.keys(parseEnv(read(file))).toSorted(), settings);
    t.true(documented.length > 30);
    for (const name of documented) t.regex(read(file), new RegExp(`^#?${name}=`, "m"));
  });

test("init keeps the files that exist, and writes none", async (t) => {
  const folder = mkdtempSync(`${folders}/`);
  writeFileSync(path.join(folder, ".env"), "PORT=4000\n");
  const { code, stderr, read } = await init(["compose"], folder);
  t.is(code, 1);
  t.is(stderr, `${path.join(folder, ".env")} exists. Nothing was written.\n`);
  t.deepEqual(readdirSync(folder), [".env"]);
  t.is(read(".env"), "PORT=4000\n");
});

for (const target of ["docker", "constructor"])
  test(`init ${target} is refused`, async (t) => {
    const { code, stderr, folder } = await init([target]);
    t.is(code, 1);
    t.is(stderr, "The target must be env, systemd or compose.\n");
    t.deepEqual(readdirSync(folder), []);
  });
