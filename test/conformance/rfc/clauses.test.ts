import { readdirSync, readFileSync } from "node:fs";
import test from "ava";
import { ROOT } from "../../harness/program.ts";
import { reportTable } from "../report.ts";
import type { Standard } from "./clause.ts";

const names = readdirSync(import.meta.dirname).filter((name) => /^\d+\.ts$/.test(name));
const standards: Standard[] = await Promise.all(
  names.map(async (name) => (await import(`./${name}`)).standard),
);

const sources = new Map<string, string>();
function sourceOf(file: string): string {
  const source = sources.get(file) ?? readFileSync(`${ROOT}test/${file}.test.ts`, "utf8");
  sources.set(file, source);
  return source;
}

for (const { rfc, clauses } of standards) {
  test(`RFC ${rfc}: each requirement is listed once, with its section`, (t) => {
    t.true(clauses.length > 0);
    t.is(new Set(clauses.map(({ section, rule }) => section + rule)).size, clauses.length);
    for (const { section } of clauses) t.regex(section, /^[0-9A-Z]+(\.\d+)*$/);
  });

  for (const clause of clauses)
    if ("tests" in clause)
      test(`RFC ${rfc} §${clause.section}: ${clause.rule}`, (t) => {
        for (const reference of clause.tests) {
          const [file = "", ...title] = reference.split(": ");
          t.true(sourceOf(file).includes(title.join(": ")), reference);
        }
      });
}

test("the documentation has the counts", (t) => {
  const rows = standards.map(({ rfc, name, clauses }) => {
    const count = (member: string) => String(clauses.filter((clause) => member in clause).length);
    return [`${name} (RFC ${rfc})`, count("tests"), count("why"), count("deviation")];
  });
  const header = ["Standard", "Tested", "Not testable", "Deviations"];
  reportTable(t, "requirements", [header, ...rows], "standards");
  const deviations = standards.flatMap(({ rfc, clauses }) =>
    clauses.flatMap((clause) =>
      "deviation" in clause ? [[`RFC ${rfc} §${clause.section}`, clause.rule, clause.deviation]] : [],
    ),
  );
  reportTable(t, "deviations", [["Section", "Requirement", "Instead"], ...deviations], "standards");
});
