import { readFileSync, writeFileSync } from "node:fs";
import type { ExecutionContext } from "ava";
import { ROOT } from "../harness/program.ts";

/** Checks that a page of `docs/` has this table between its two comments with the name, or writes it with `WRITE_CONFORMANCE`. */
export function reportTable(
  t: ExecutionContext,
  name: string,
  rows: [header: string[], ...string[][]],
  page = "conformance",
): void {
  const file = `${ROOT}docs/${page}.md`;
  const [header, ...others] = rows;
  const lines = [header, header.map(() => "---"), ...others].map((cells) => `| ${cells.join(" | ")} |\n`);
  const document = readFileSync(file, "utf8");
  const place = new RegExp(`(?<=<!-- ${name} -->\n).*?(?=<!-- /${name} -->)`, "s");
  const current = document.replace(place, () => lines.join(""));
  if (process.env.WRITE_CONFORMANCE) writeFileSync(file, current);
  else t.is(document, current, "run npm run docs:conformance");
  t.true(place.test(document), name);
}
