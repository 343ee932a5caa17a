import { readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../../harness/program.ts";
import { reportTable } from "../report.ts";

type Clause = { section: string; rule: string; cell: string };

const [, ...parts] = readFileSync(`${ROOT}test/conformance/rfc/clauses.md`, "utf8").split("\n## RFC ");
const standards = parts.map((part) => {
  const [heading = "", ...lines] = part.trimEnd().split("\n");
  const [rfc = "", name = ""] = heading.split(": ");
  const rows = lines.filter((line) => line.startsWith("| ")).map((line) => line.slice(2, -2).split(" | "));
  const clauses = rows
    .slice(1)
    .map(([section = "", rule = "", cell = ""]): Clause => ({ section, rule, cell }));
  return { rfc, name, clauses };
});

const isTested = ({ cell }: Clause) => cell.startsWith("`");
const isDeviation = ({ cell }: Clause) => cell.startsWith("*Deviation:* ");
const isUntestable = ({ cell }: Clause) => cell.startsWith("*Not testable:* ");

test("each requirement is listed once, with its section, and its tests or why there are none", (t) => {
  t.true(standards.length > 0);
  for (const { rfc, clauses } of standards) {
    t.true(clauses.length > 0, rfc);
    t.is(new Set(clauses.map(({ section, rule }) => section + rule)).size, clauses.length, rfc);
    for (const clause of clauses) {
      const where = `RFC ${rfc} §${clause.section}: ${clause.rule}`;
      t.regex(clause.section, /^[0-9A-Z]+(\.\d+)*$/, where);
      t.true(isTested(clause) || isDeviation(clause) || isUntestable(clause), where);
    }
  }
});

test("the tests that hold the requirements exist", (t) => {
  const sources = new Map<string, string>();
  const sourceOf = (file: string) => {
    const source = sources.get(file) ?? readFileSync(`${ROOT}test/${file}.test.ts`, "utf8");
    sources.set(file, source);
    return source;
  };
  const missing = standards
    .flatMap(({ clauses }) => clauses.filter(isTested))
    .flatMap(({ cell }) => [...cell.matchAll(/`([^`]+)`/g)].map(([, reference = ""]) => reference))
    .filter((reference) => {
      const [file = "", ...title] = reference.split(": ");
      return !sourceOf(file).includes(title.join(": "));
    });
  t.deepEqual(missing, []);
});

test("the documentation has the counts", (t) => {
  const rows = standards.map(({ rfc, name, clauses }) => [
    `${name} (RFC ${rfc})`,
    ...[isTested, isUntestable, isDeviation].map((is) => String(clauses.filter(is).length)),
  ]);
  const header = ["Standard", "Tested", "Not testable", "Deviations"];
  reportTable(t, "requirements", [header, ...rows], "standards");
  const deviations = standards.flatMap(({ rfc, clauses }) =>
    clauses
      .filter(isDeviation)
      .map(({ section, rule, cell }) => [`RFC ${rfc} §${section}`, rule, cell.replace("*Deviation:* ", "")]),
  );
  reportTable(t, "deviations", [["Section", "Requirement", "Instead"], ...deviations], "standards");
});
