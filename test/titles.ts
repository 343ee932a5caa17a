// What became of the titles of a commit: node test/titles.ts <commit> [<map>]
// Compares the titles that the sources declare, with "…" for what a table fills in. A line of the map has, between tabs, a
// former title, what became of it, and what keeps its promise ("unit/cors: no origin …"). What is "removed" or has "none" is
// listed. Exits with 1 if a former title is neither kept nor in the map, or if the map names a title that doesn't exist.

import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { parseSync, Visitor } from "rolldown/utils";

type Call = Parameters<Required<ConstructorParameters<typeof Visitor>[0]>["CallExpression"]>[0];
type Node = Call["callee"] | Call["arguments"][number];

// Those of the harness as well: `databaseTest`, `inChromium`, `onServers`, `withRedis`.
const CALLS = /^(\w*[tT]est|(in|on|with)[A-Z])\w*(\.|$)/;

const [commit, map] = process.argv.slice(2);
if (!commit) throw new Error("usage: node test/titles.ts <commit> [<map>]");

const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" });
const files = git("ls-tree", "-r", "--name-only", commit, "test").match(/^.+\.ts$/gm) ?? [];
const former = new Set(files.flatMap((file) => titlesOf(file, git("show", `${commit}:${file}`))));
const kept = new Set<string>();
const existing = new Set<string>();
for (const file of globSync("test/**/*.ts"))
  for (const title of titlesOf(file, readFileSync(file, "utf8"))) {
    kept.add(title);
    existing.add(`${file.replace(/^test\/|(\.test)?\.ts$/g, "")}: ${title}`);
  }
const lines = map ? readFileSync(map, "utf8").trimEnd().split("\n") : [];
const became = new Map(lines.map((line) => line.split("\t")).map(([title, ...rest]) => [title, rest]));

const counts = new Map<string, number>();
for (const title of former) {
  const [what = "unknown", where = ""] = kept.has(title) ? ["kept"] : (became.get(title) ?? []);
  counts.set(what, (counts.get(what) ?? 0) + 1);
  if (what === "kept" || existing.has(where)) continue;
  console.log(`${what}: ${title}${where && ` (${where})`}`);
  if (what !== "removed" && what !== "none") process.exitCode = 1;
}
console.log([...counts].map(([what, count]) => `${count} ${what}`).join(", "));

/** The first arguments of calls such as `test(title, run)`, or the constants of the file that they name. */
function titlesOf(file: string, code: string): string[] {
  const constants: [name: string, text: string][] = [];
  const given: Node[] = [];
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.type === "Identifier" && init) constants.push([id.name, textOf(init)]);
    },
    CallExpression({ callee, arguments: [title, run] }) {
      if (CALLS.test(code.slice(callee.start, callee.end)) && title && run) given.push(title);
    },
  }).visit(parseSync(file, code).program);
  const titles = given.flatMap((title) => {
    if (title.type !== "Identifier") return textOf(title);
    return constants.filter(([name]) => name === title.name).map(([, text]) => text);
  });
  return titles.filter((text) => /[a-z]/i.test(text) && text.includes(" "));
}

function textOf(node: Node): string {
  if (node.type === "Literal") return String(node.value);
  if (node.type === "TemplateLiteral") return node.quasis.map(({ value }) => value.cooked).join("…");
  if (node.type === "BinaryExpression") return textOf(node.left as Node) + textOf(node.right as Node);
  // As of `title.trim()`.
  if (node.type === "CallExpression" && node.callee.type === "MemberExpression")
    return textOf(node.callee.object);
  return "…";
}
