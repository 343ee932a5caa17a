import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import config from "../../.dependency-cruiser.json" with { type: "json" };
import { ROOT } from "../harness/program.ts";

const FOLDERS = ["server", "resources", "adapters", "certification/src", "client/src"];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((file) => path.join(folder, file))
    .filter((file) => /\.(ts|js)$/.test(file) && !file.endsWith(".d.ts")),
).concat("knexfile.ts");
// Their templates are code for users to paste; nothing in them runs here.
const SNIPPETS = ["server/docs/examples.ts"];
const TEMPLATE = /`(?:\\[\s\S]|[^`\\])*`/g;
// Comments may mention what the code must not use.
const COMMENT = /^\s*(\/\*\*?[\s\S]*?\*\/|\/\/.*)$/gm;
const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const sources = new Map(
  files.map((file) => {
    const source = read(file).replace(COMMENT, "");
    return [file, SNIPPETS.includes(file) ? source.replace(TEMPLATE, "``") : source];
  }),
);

test("no import violates the rules of the folders and packages", async (t) => {
  const { forbidden, options } = config;
  const rules = { ...options, ruleSet: { forbidden }, validate: true, baseDir: ROOT };
  const { output } = await cruise(FOLDERS, rules as unknown as ICruiseOptions);
  const { modules, summary } = output as ICruiseResult;
  for (const { rule, from, to } of summary.violations) t.fail(`${rule.name}: ${from} → ${to}`);
  const checked = modules.map(({ source }) => source);
  for (const file of files) t.true(!file.includes("/") || checked.includes(file), `${file} is checked`);
});

test("every rule names files and packages that exist", (t) => {
  const { dependencies } = JSON.parse(read("package.json")) as { dependencies: object };
  const packages = Object.keys(dependencies).map((name) => `node_modules/${name}/`);
  const named = [...files, ...packages, "test/", "https"];
  const isNamed = (pattern = "") => named.some((file) => new RegExp(pattern).test(file));
  for (const { name, from, to } of config.forbidden)
    for (const path of [from.path, from.pathNot, to.path, to.pathNot].flat()) t.true(isNamed(path), name);
});

const MODELS =
  "(Client|Grant|Session|Interaction|ReplayDetection|OIDCContext|\\w*Token|\\w*Code|\\w+Credentials)";
const OVERRIDE = new RegExp(`${MODELS}\\.prototype|IN_PAYLOAD|Object\\.\\w+\\((\\w+\\.)?${MODELS}\\b`);

const filesWith = (pattern: RegExp) => files.filter((file) => pattern.test(sources.get(file) ?? "")).sort();

test("only seams import private files of oidc-provider or change its models", (t) => {
  const overriding = new Set(filesWith(OVERRIDE)).intersection(new Set(filesWith(/oidc-provider/)));
  const relying = [...overriding, ...filesWith(/oidc-provider\/lib/)];
  for (const file of relying) t.true(file.startsWith("server/provider/seams/"), file);
  t.not(relying.length, 0);
});

test("only server/settings/config.ts and knexfile.ts read the environment", (t) => {
  const readers = filesWith(/process\.env|from "node:process"|loadEnvFile/);
  t.deepEqual(readers, ["knexfile.ts", "server/settings/config.ts"]);
});

test("no file outside adapters/ contains SQL", (t) => {
  const SQL = /["'`]\s*(select .* from|insert into|update \w+ set|delete from|create table)\b/i;
  for (const file of filesWith(SQL)) t.true(file.startsWith("adapters/"), file);
});

// Normalizing a long text takes long, and makes it longer. Adapters get only what was validated.
const NORMALIZING: Record<string, string> = {
  "adapters/accounts/sign-in-failures.ts": "a valid username",
  "adapters/links/row.ts": "the fields of a link, and a search",
  "resources/http/text.ts": "any text, after its length was checked",
};

test("texts are normalized only where their length is known", (t) => {
  t.deepEqual(filesWith(/(?<!path)\.normalize\b/), Object.keys(NORMALIZING));
});

test("no file is longer than 400 lines, except for a generated one", (t) => {
  const written = files.filter((file) => file !== "client/src/api.ts");
  const long = written.filter((file) => read(file).split("\n").length > 400);
  t.deepEqual(long, []);
});

// Closing a descriptor of a file that SQLite has open drops its locks on it (adapters/database/sqlite/connection.ts), so
// each use of a function that opens files is listed with what it opens: never a database, or its `-shm` file.
const OPENED: Record<string, string> = {
  "adapters/database/sqlite/backup.ts: openSync": "the backup, and its folder, while SQLite has neither open",
  "adapters/database/sqlite/connection.ts: openSync": "a database that doesn't exist yet; its folder",
  "adapters/durable-files.ts: openSync": "a folder",
  "server/cli/commands/backup-and-copy.ts: copyFileSync": "the encryption key",
  "server/cli/commands/backup-and-copy.ts: openSync": "a copy of the encryption key",
  "server/cli/commands/conformance.ts: readFile": "the configuration that a command names",
  "server/cli/commands/conformance.ts: writeFile": "JUnit XML",
  "server/cli/commands/import.ts: createReadStream":
    "the links that a command names; not the database, which is refused",
  "server/cli/commands/import.ts: open": "a new file of refused rows",
  "server/cli/commands/init.ts: appendFileSync": "files of settings",
  "server/cli/commands/init.ts: readFileSync": "the files of the package, and the file of settings",
  "server/cli/commands/init.ts: truncateSync": "the file of settings",
  "server/cli/commands/operations.ts: readFileSync": "the public key that a command names",
  "server/cli/login-file.ts: readFileSync": "the tokens of a person",
  "server/cli/login-file.ts: writeFileSync": "the tokens of a person",
  "server/credentials/breached-passwords/build.ts: readFileSync": "the list of passwords",
  "server/credentials/breached-passwords/build.ts: writeFileSync": "the filter",
  "server/credentials/breached-passwords/is-breached.ts: readFileSync": "the filter",
  "server/credentials/lookalikes/build.ts: readFileSync": "Unicode's data",
  "server/credentials/lookalikes/build.ts: writeFileSync": "the table of lookalikes",
  "server/docs/guides.ts: readFileSync": "the documentation",
  "server/docs/index.ts: readFile": "images and examples of the documentation",
  "server/keys/encryption-keys.ts: openSync": "the lock of the encryption key",
  "server/keys/encryption-keys.ts: readFileSync": "the encryption key",
  "server/keys/encryption-keys.ts: writeFileSync": "the encryption key",
  "server/provider/leak-reports.ts: readFile": "the public keys of the settings",
  "server/rate-limits/connections.ts: readFileSync": "/proc/self/limits",
  "server/settings/config.ts: readFileSync": ".env",
  "server/settings/country-database.ts: readFileSync": "the database of countries of the settings",
  "server/ui/asset-files.ts: readFileSync": "assets and style sheets",
};
const OPENS = /^(open(AsBlob)?|(read|write|append|copy)File|create(Read|Write)Stream|cp|truncate)(Sync)?$/;

test("no file opens a database beside SQLite", (t) => {
  const opened = [...sources].flatMap(([file, source]) =>
    [...source.matchAll(/import \{([^}]+)\} from "node:fs(?:\/promises)?"/g)]
      .flatMap(([, names = ""]) => names.match(/\w+/g) ?? [])
      .filter((name) => OPENS.test(name))
      .map((name) => `${file}: ${name}`),
  );
  t.deepEqual(opened.sort(), Object.keys(OPENED));
});

test("only one copy of SQLite opens databases, and none through a namespace of node:fs", (t) => {
  const SQLITE = /^import (?!type).*"better-sqlite3"|knex\/lib\/dialects\/better-sqlite3/m;
  const NAMESPACE = /node:sqlite|import\("node:fs|import (\* as )?\w+ from "(node:)?fs|from "fs\b|require\(/;
  const importing = ["backup", "client", "connection"].map((name) => `adapters/database/sqlite/${name}.ts`);
  t.deepEqual(filesWith(SQLITE), importing);
  t.deepEqual(filesWith(NAMESPACE), []);
});
