import { readFileSync, writeFileSync } from "node:fs";
import type { ExecutionContext } from "ava";
import { ROOT } from "../../harness/program.ts";
import type { Plan } from "./plans.ts";

const DOCUMENT = `${ROOT}docs/conformance.md`;

/** Checks that the document has the results of these plans, or with `WRITE_CONFORMANCE` writes them. */
export function reportOf(t: ExecutionContext, plans: Plan[], notApplicable: Record<string, string>): void {
  const document = readFileSync(DOCUMENT, "utf8");
  const current = plans.reduce((text, plan) => withResults(text, plan, notApplicable), document);
  if (process.env.WRITE_CONFORMANCE) writeFileSync(DOCUMENT, current);
  else t.is(document, current, "run npm run docs:conformance");
}

function withResults(
  document: string,
  { name, modules }: Plan,
  notApplicable: Record<string, string>,
): string {
  const rows = modules.map((module) => {
    const reason = notApplicable[module];
    return `| \`${module}\` | ${reason ? "not applicable" : "passed"} | ${reason ?? ""} |`;
  });
  const table = ["| Module | Result | Reason |", "|---|---|---|", ...rows].join("\n");
  const place = new RegExp(`(?<=<!-- ${name} -->\\n).*?(?=<!-- /${name} -->)`, "s");
  return document.replace(place, () => `${table}\n`);
}
