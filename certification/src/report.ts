import type { Result, Verdict } from "./check.ts";

type Counts = Record<Verdict, number>;

export type Report = { issuer: string; checks: Result[] } & Counts;

export function countOf(results: readonly Result[]): Counts {
  const count = (verdict: Verdict) => results.filter((result) => result.verdict === verdict).length;
  return {
    passed: count("passed"),
    failed: count("failed"),
    warning: count("warning"),
    skipped: count("skipped"),
  };
}

/** What people read: what was found with its last exchange, then what was skipped and why. */
export function toText({ checks, passed, failed, warning, skipped }: Report): string {
  const found = checks.filter(({ verdict }) => verdict === "failed" || verdict === "warning");
  const reasons = Map.groupBy(
    checks.filter(({ verdict }) => verdict === "skipped"),
    ({ detail }) => detail,
  );
  const lines = [
    ...found.map((result) => `${describe(result)}\n`),
    ...[...reasons].map(([reason, { length }]) => `skipped ${length}: ${reason}`),
    `${checks.length} checks: ${passed} passed, ${failed} failed, ${warning} warnings, ${skipped} skipped`,
  ];
  return lines.join("\n");
}

function describe({ verdict, id, title, clause, detail, exchanges }: Result): string {
  const last = exchanges.at(-1);
  const exchange = last ? `${last.request}\n\n${last.response}`.replaceAll(/^/gm, "    ") : "";
  return [`${verdict} ${id}: ${title} (${clause})`, `  ${detail}`, exchange].filter(Boolean).join("\n");
}

/** JUnit XML, as CI systems read it. A warning is not a failure. */
export function toJunit({ issuer, checks, failed, skipped }: Report): string {
  const cases = checks.map(({ id, title, clause, verdict, detail = "", exchanges }) => {
    const name = `<testcase classname="${toXml(id)}" name="${toXml(`${title} (${clause})`)}">`;
    const text = exchanges.map(({ request, response }) => `${request}\n\n${response}`).join("\n\n");
    const content = {
      passed: "",
      failed: `<failure message="${toXml(detail)}">${toXml(text)}</failure>`,
      warning: `<system-out>warning: ${toXml(detail)}</system-out>`,
      skipped: `<skipped message="${toXml(detail)}"/>`,
    }[verdict];
    return `${name}${content}</testcase>`;
  });
  const counts = `tests="${checks.length}" failures="${failed}" skipped="${skipped}"`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="${toXml(issuer)}" ${counts}>\n${cases.join("\n")}\n</testsuite>\n`;
}

const ENTITIES: Record<string, string> = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" };

/** Control characters are not allowed in XML 1.0, even escaped. */
function toXml(text: string): string {
  return text.replace(/[^\P{Cc}\t\n\r]/gu, "").replace(/[<>&"]/g, (char) => ENTITIES[char] ?? "");
}
