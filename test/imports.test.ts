import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import config from "../.dependency-cruiser.json" with { type: "json" };
import { ROOT } from "./harness/program.ts";

const FOLDERS = ["server", "resources", "adapters", "certification/src", "client/src"];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((file) => path.join(folder, file))
    .filter((file) => /\.(ts|js)$/.test(file) && !file.endsWith(".d.ts")),
).concat("knexfile.ts");
// Their templates are code for users to paste; nothing in them runs here.
const SNIPPETS = ["server/dashboard/api-access/snippets.ts", "server/docs/examples.ts"];
const sources = new Map(
  files.map((file) => {
    const source = withoutComments(readFileSync(path.join(ROOT, file), "utf8"));
    return [file, SNIPPETS.includes(file) ? withoutTemplates(source) : source];
  }),
);

/** Removes comments, which may mention what the code must not use. */
function withoutComments(source: string): string {
  return source.replace(/^\s*(\/\*\*?[\s\S]*?\*\/|\/\/.*)$/gm, "");
}

function withoutTemplates(source: string): string {
  return source.replace(/`(?:\\[\s\S]|[^`\\])*`/g, "``");
}

/** Checks the imports below a folder by the rules of `.dependency-cruiser.json`. */
async function checkImports(baseDir: string): Promise<ICruiseResult> {
  const { forbidden, options } = config;
  const rules = { ...options, ruleSet: { forbidden }, validate: true, baseDir } as unknown as ICruiseOptions;
  return (await cruise(FOLDERS, rules)).output as ICruiseResult;
}

test.serial("no import violates the rules of the folders and packages", async (t) => {
  const { modules, summary } = await checkImports(ROOT);
  t.deepEqual(
    summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
    [],
  );
  const checked = modules.map(({ source }) => source);
  t.deepEqual(
    files.filter((file) => file.includes("/") && !checked.includes(file)),
    [],
    "each file is checked",
  );
});

const VIOLATIONS: Record<string, [file: string, source: string][]> = {
  "no-cycle-between-files": [
    ["server/a.ts", 'import type { B } from "./b.ts";\nexport type A = B;'],
    ["server/b.ts", 'import type { A } from "./a.ts";\nexport type B = A[];'],
  ],
  "no-cycle-between-folders": [
    ["adapters/one/a.ts", 'import type { B } from "../two/b.ts";\nexport type A = B;'],
    ["adapters/two/b.ts", "export type B = string;"],
    ["adapters/two/c.ts", 'import type { D } from "../one/d.ts";\nexport type C = D;'],
    ["adapters/one/d.ts", "export type D = string;"],
  ],
  "resources-import-only-resources": [
    ["resources/a.ts", 'import type { B } from "../adapters/b.ts";\nexport type A = B;'],
    ["adapters/b.ts", "export type B = string;"],
  ],
  "certification-imports-only-certification": [
    ["certification/src/a.ts", 'import type { B } from "../../server/b.ts";\nexport type A = B;'],
    ["server/b.ts", "export type B = string;"],
  ],
  "only-the-index-of-certification-is-imported": [
    ["server/a.ts", 'import type { B } from "../certification/src/b.ts";\nexport type A = B;'],
    ["certification/src/b.ts", "export type B = string;"],
  ],
  "client-imports-only-client": [
    ["client/src/a.ts", 'import type { B } from "../../resources/b.ts";\nexport type A = B;'],
    ["resources/b.ts", "export type B = string;"],
  ],
  "nothing-imports-client": [
    ["resources/a.ts", 'import type { B } from "../client/src/b.ts";\nexport type A = B;'],
    ["client/src/b.ts", "export type B = string;"],
  ],
  "adapters-do-not-import-server": [
    ["adapters/a.ts", 'import type { B } from "../server/b.ts";\nexport type A = B;'],
    ["server/b.ts", "export type B = string;"],
  ],
  "no-import-of-tests": [
    ["server/a.ts", 'import { b } from "../test/b.ts";\nexport const a = b;'],
    ["test/b.ts", "export const b = 1;"],
  ],
  "only-adapters-import-database-drivers": [["resources/a.ts", 'import "knex";']],
  "adapters-import-no-http": [["adapters/a.ts", 'import "node:http";']],
  "only-adapters-oauth-oidc-and-server-import-oidc-provider": [["adapters/a.ts", 'import "oidc-provider";']],
  "only-resources-mcp-imports-the-mcp-sdk": [["server/a.ts", 'import "@modelcontextprotocol/server";']],
  "only-server-imports-argon2": [["resources/a.ts", 'import "@node-rs/argon2";']],
  "imports-resolve": [["server/a.ts", 'import "./missing.ts";']],
};

test("each rule has an example of its violation", (t) => {
  t.deepEqual(
    config.forbidden.map(({ name }) => name),
    Object.keys(VIOLATIONS),
  );
});

for (const [rule, violation] of Object.entries(VIOLATIONS)) {
  test.serial(`a violation of ${rule} is found`, async (t) => {
    // Below the repository, so that packages resolve.
    const folder = mkdtempSync(path.join(ROOT, "test/.imports-"));
    t.teardown(() => rmSync(folder, { recursive: true }));
    for (const name of FOLDERS) mkdirSync(path.join(folder, name), { recursive: true });
    for (const [file, source] of violation) {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      writeFileSync(path.join(folder, file), source);
    }
    const { summary } = await checkImports(folder);
    t.deepEqual([...new Set(summary.violations.map((found) => found.rule.name))], [rule]);
  });
}

const MODELS =
  "(Client|Grant|Session|Interaction|ReplayDetection|OIDCContext|\\w*Token|\\w*Code|\\w+Credentials)";
const OVERRIDE = new RegExp(`${MODELS}\\.prototype|IN_PAYLOAD|Object\\.\\w+\\((\\w+\\.)?${MODELS}\\b`);

test("only seams import private files of oidc-provider or change its models", (t) => {
  const relying = [...sources].filter(
    ([, source]) =>
      source.includes("oidc-provider/lib") || (source.includes("oidc-provider") && OVERRIDE.test(source)),
  );
  t.deepEqual(
    relying.map(([file]) => file).filter((file) => !file.startsWith("server/provider/seams/")),
    [],
  );
  t.not(relying.length, 0);
});

test("only server/settings/config.ts and knexfile.ts read the environment", (t) => {
  const readers = [...sources].filter(([, source]) =>
    /process\.env|from "node:process"|loadEnvFile/.test(source),
  );
  t.deepEqual(readers.map(([file]) => file).sort(), ["knexfile.ts", "server/settings/config.ts"]);
});

test("no file outside adapters/ contains SQL", (t) => {
  const STATEMENTS = /["'`]\s*(select .* from|insert into|update \w+ set|delete from|create table)\b/i;
  const wrong = [...sources].filter(
    ([file, source]) => !file.startsWith("adapters/") && STATEMENTS.test(source),
  );
  t.deepEqual(
    wrong.map(([file]) => file),
    [],
  );
});

// Normalizing a long text takes long, and makes it longer. Adapters get only what was validated.
const NORMALIZING: Record<string, string> = {
  "adapters/accounts/sign-in-failures.ts": "a valid username",
  "adapters/links/row.ts": "the fields of a link, and a search",
  "resources/http/text.ts": "any text, after its length was checked",
};

test("texts are normalized only where their length is known", (t) => {
  const normalizing = [...sources].filter(([, source]) =>
    /\.normalize\b/.test(source.replace("path.normalize", "")),
  );
  t.deepEqual(normalizing.map(([file]) => file).sort(), Object.keys(NORMALIZING));
});

test("no file is longer than 400 lines, except for a generated one", (t) => {
  const written = files.filter((file) => file !== "client/src/api.ts");
  const long = written.filter((file) => readFileSync(path.join(ROOT, file), "utf8").split("\n").length > 400);
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
  const importing = (pattern: RegExp) =>
    [...sources].filter(([, source]) => pattern.test(source)).map(([file]) => file);
  t.deepEqual(importing(/^import (?!type).*"better-sqlite3"|knex\/lib\/dialects\/better-sqlite3/m).sort(), [
    "adapters/database/sqlite/backup.ts",
    "adapters/database/sqlite/client.ts",
    "adapters/database/sqlite/connection.ts",
  ]);
  t.deepEqual(
    importing(/node:sqlite|import\("node:fs|import (\* as )?\w+ from "(node:)?fs|from "fs\b|require\(/),
    [],
  );
});
