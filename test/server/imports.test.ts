import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { ROOT } from "../harness/program.ts";

type Import = { from: string; specifier: string; isType: boolean };

const FOLDERS = ["server", "resources", "adapters"];
const files = FOLDERS.flatMap((folder) =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((file) => path.join(folder, file))
    .filter((file) => /\.(ts|js)$/.test(file) && !file.endsWith(".d.ts")),
).concat("knexfile.ts");
// What it holds in templates is for others to paste, and nothing that runs here.
const SNIPPETS = "server/dashboard/snippets.ts";
const sources = new Map(
  files.map((file) => {
    const source = withoutComments(readFileSync(path.join(ROOT, file), "utf8"));
    return [file, file === SNIPPETS ? withoutTemplates(source) : source];
  }),
);

/** Comments may name what the code does not. */
function withoutComments(source: string): string {
  return source.replace(/^\s*(\/\*\*?[\s\S]*?\*\/|\/\/.*)$/gm, "");
}

function withoutTemplates(source: string): string {
  return source.replace(/`(?:\\[\s\S]|[^`\\])*`/g, "``");
}

const STATEMENT = /^(?:import|export)\s+(type\s+)?(?:([^"';]*?)\s+from\s+)?["']([^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([^"']+)["']/g;

/** The imports of a file; it is a type import when nothing of it is left at run time. */
function importsOf(from: string): Import[] {
  const source = sources.get(from) ?? "";
  const fixed = [...source.matchAll(STATEMENT)].map(([, type, names = "", specifier = ""]) => {
    const inner = /^\{([\s\S]*)\}$/.exec(names.trim())?.[1];
    const all = inner
      ?.split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const isType = Boolean(type) || (all?.length ? all.every((name) => name.startsWith("type ")) : false);
    return { from, specifier, isType };
  });
  const dynamic = [...source.matchAll(DYNAMIC)].map(([, specifier = ""]) => ({
    from,
    specifier,
    isType: false,
  }));
  return [...fixed, ...dynamic];
}

const imports = files.flatMap(importsOf);

/** The file of ours that an import names; nothing for packages. */
function targetOf({ from, specifier }: Import): string | undefined {
  return specifier.startsWith(".") ? path.join(path.dirname(from), specifier) : undefined;
}

const folderOf = (file: string) => file.split("/")[0] as string;
const show = ({ from, specifier }: Import) => `${from} imports ${specifier}`;

test("the reader of imports sees all of them", (t) => {
  t.true(files.length > 50);
  for (const [file, source] of sources) {
    const expected = source.match(/^\s*\}?\s*(import|export)?\b.*\bfrom ["']/gm)?.length ?? 0;
    const found = importsOf(file).length;
    t.true(found >= expected, `${file}: ${found} of ${expected}`);
  }
  for (const one of imports) {
    const target = targetOf(one);
    if (target && !target.endsWith(".json"))
      t.true(sources.has(target) || target.endsWith(".d.ts"), show(one));
  }
});

test("imports point down: the server to all, the resources to themselves, the adapters to themselves and to types of the resources", (t) => {
  const ALLOWED: Record<string, string[]> = {
    server: ["server", "resources", "adapters"],
    resources: ["resources"],
    adapters: ["adapters"],
    "knexfile.ts": ["adapters"],
  };
  const wrong = imports.filter((one) => {
    const target = targetOf(one);
    if (!target || target === "package.json") return false;
    const [from, to] = [folderOf(one.from), folderOf(target)];
    if (from === "adapters" && to === "resources") return !one.isType;
    return !ALLOWED[from]?.includes(to);
  });
  t.deepEqual(wrong.map(show), []);
});

test("no circle between files, types apart", (t) => {
  const edges = Map.groupBy(
    imports.filter((one) => !one.isType && targetOf(one)),
    ({ from }) => from,
  );
  const done = new Set<string>();
  const circles: string[] = [];
  function walk(file: string, trail: string[]) {
    if (trail.includes(file))
      return void circles.push([...trail.slice(trail.indexOf(file)), file].join(" → "));
    if (done.has(file)) return;
    for (const edge of edges.get(file) ?? []) walk(targetOf(edge) as string, [...trail, file]);
    done.add(file);
  }
  for (const file of files) walk(file, []);
  t.deepEqual(circles, []);
});

test("only the settings and Knex's own tools read the environment", (t) => {
  const readers = [...sources].filter(([, source]) =>
    /process\.env|from "node:process"|loadEnvFile/.test(source),
  );
  t.deepEqual(readers.map(([file]) => file).sort(), ["knexfile.ts", "server/config.ts"]);
});

const PACKAGES: [what: string, packages: RegExp, allowed: RegExp][] = [
  ["SQL stays in adapters/", /^(knex|better-sqlite3|pg|mysql2)(\/|$)/, /^adapters\//],
  [
    "HTTP stays out of adapters/",
    /^(koa|@koa\/.*|koa-bodyparser|(node:)?https?2?)$/,
    /^(server|resources)\//,
  ],
  [
    "oidc-provider is known to adapters/oidc and the server alone",
    /^oidc-provider(\/|$)/,
    /^(adapters\/oidc|server)\//,
  ],
  ["MCP is known to resources/mcp alone", /^@modelcontextprotocol\//, /^resources\/mcp\//],
  ["argon2 is known to the server alone", /^@node-rs\/argon2$/, /^server\//],
];

for (const [what, packages, allowed] of PACKAGES) {
  test(what, (t) => {
    const users = imports.filter(({ specifier }) => packages.test(specifier));
    t.true(users.length > 0, "somebody uses it");
    t.deepEqual(users.filter(({ from }) => !allowed.test(from)).map(show), []);
  });
}

test("no statement is written outside adapters/", (t) => {
  const STATEMENTS = /["'`]\s*(select .* from|insert into|update \w+ set|delete from|create table)\b/i;
  const wrong = [...sources].filter(
    ([file, source]) => !file.startsWith("adapters/") && STATEMENTS.test(source),
  );
  t.deepEqual(
    wrong.map(([file]) => file),
    [],
  );
});

test("no file is longer than 250 lines", (t) => {
  const long = files.filter((file) => readFileSync(path.join(ROOT, file), "utf8").split("\n").length > 250);
  t.deepEqual(long, []);
});
