// Checks that the product's regular expressions take linear time for any text. JavaScript has no other kind of matching, so
// one request could hold a process for minutes with the others. https://makenowjust-labs.github.io/recheck/

import { globSync, readFileSync } from "node:fs";
import { check } from "recheck";
import { parseSync, Visitor } from "rolldown/utils";
import { analyse } from "scslre";

/** The expressions that may stay, and what bounds their input. */
const EXCEPTIONS: Record<string, string> = {
  'resources/links/import/times.ts new RegExp(`^${form}$`, "i")': "50 characters, and forms of fixed lengths",
};

const FILES = "{server,adapters,resources,client,certification/src}/**/*.{ts,js}";
const TIMEOUT_MS = 120_000;

type Expression = { line: number; source: string | undefined; flags: string; text: string };
type Visit = Required<ConstructorParameters<typeof Visitor>[0]>;
type Call = Parameters<Visit["NewExpression"]>[0] | Parameters<Visit["CallExpression"]>[0];
type Node = Call["arguments"][number];
/** The texts and expressions that a file names in constants. */
type Constants = Map<string, string>;

/** Finds the literals, and the calls of `RegExp`. The source is undefined if it isn't constant. */
export function expressionsOf(file: string, code: string): Expression[] {
  const { program, errors } = parseSync(file, code);
  if (errors.length > 0) throw new SyntaxError(`${file}: ${errors[0]?.message}`);
  const constants: Constants = new Map();
  const found: Expression[] = [];
  const add = ({ start, end }: Node, source: string | undefined, flags: string) =>
    found.push({
      line: code.slice(0, start).split("\n").length,
      source,
      flags,
      text: code.slice(start, end).replaceAll(/\s+/g, " "),
    });
  const addCall = (call: Call) => {
    if (call.callee.type !== "Identifier" || call.callee.name !== "RegExp") return;
    const [source, flags] = call.arguments;
    add(call, source && constantOf(source, constants), (flags && constantOf(flags, constants)) ?? "");
  };
  new Visitor({
    VariableDeclarator({ id, init }) {
      const value = init ? constantOf(init, constants) : undefined;
      if (id.type === "Identifier" && value !== undefined) constants.set(id.name, value);
    },
    Literal(node) {
      if ("regex" in node) add(node, node.regex.pattern, node.regex.flags);
    },
    NewExpression: addCall,
    CallExpression: addCall,
  }).visit(program);
  return found;
}

/** Returns the text of a literal, a template or a constant above it. */
function constantOf(node: Node, constants: Constants): string | undefined {
  if (node.type === "Literal") return "regex" in node ? node.regex.pattern : String(node.value);
  if (node.type === "Identifier") return constants.get(node.name);
  if (node.type === "TemplateLiteral") return templateOf(node, constants, "cooked");
  if (node.type === "TaggedTemplateExpression") return templateOf(node.quasi, constants, "raw");
  return undefined;
}

function templateOf(
  { quasis, expressions }: Extract<Node, { type: "TemplateLiteral" }>,
  constants: Constants,
  form: "cooked" | "raw",
): string | undefined {
  const values = expressions.map((expression) => constantOf(expression, constants));
  if (values.includes(undefined)) return undefined;
  return quasis.map(({ value }, index) => (value[form] ?? "") + (values[index] ?? "")).join("");
}

/** Returns why an expression may take longer than linear time. */
export async function problemOf({ source, flags }: Expression): Promise<string | undefined> {
  if (source === undefined) return "its text isn't constant";
  // The other checker of recheck tries texts, and may find something else the next time.
  const verdict = await check(source, flags, { checker: "automaton", timeout: TIMEOUT_MS });
  if (verdict.status === "safe") return undefined;
  if (verdict.status === "vulnerable") {
    return `${verdict.complexity.summary}, with ${verdict.attack.pattern}`;
  }
  const { kind } = verdict.error;
  // scslre finds less, but also reads assertions and the flag v.
  if (kind !== "unsupported" && kind !== "invalid") return `can't be checked: ${kind}`;
  const [report] = analyse({ source, flags }).reports;
  return report && `${report.exponential ? "exponential" : "polynomial"}, with ${report.character}`;
}

/** Returns a line about each problem, and about each exception that has none. */
async function findProblems(): Promise<string[]> {
  const stale = new Set(Object.keys(EXCEPTIONS));
  const lines: string[] = [];
  for (const file of globSync(FILES, { exclude: (name) => name.endsWith("node_modules") })) {
    for (const expression of expressionsOf(file, readFileSync(file, "utf8"))) {
      const problem = await problemOf(expression);
      if (!problem || stale.delete(`${file} ${expression.text}`)) continue;
      lines.push(`${file}:${expression.line} ${expression.text}\n  ${problem}`);
    }
  }
  return [...lines, ...[...stale].map((exception) => `${exception}\n  is no longer an exception`)];
}

if (import.meta.main) {
  const problems = await findProblems();
  if (problems.length > 0) console.error(problems.join("\n"));
  process.exit(problems.length > 0 ? 1 : 0); // recheck's own process would keep this one running
}
