import { readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./program.ts";

/** What readers search the documentation for → the pages, one of which answers it. */
export const ANSWERS: Record<string, RegExp> = {
  token: /^\/docs\/(authentication|authorization|quick-start)\b/,
  "rate limits": /^\/docs\/rate-limits\b/,
  countries: /^\/docs\/(analytics|settings|api\/get-(link-)?analytics)\b/,
  retries: /^\/docs\/(webhooks|requests)\b/,
  slug_taken: /^\/docs\/errors\/slug_taken$/,
  "verify signature": /^\/docs\/(webhooks|verify)/,
  "github actions": /^\/docs\/workload-identity\b/,
  "custom domain": /^\/docs\/(custom-domains|settings|operations)\b/,
};

export function tableIn(document: string, heading: string): string[][] {
  const text = readFileSync(path.join(ROOT, "docs", document), "utf8");
  const [, section = ""] = text.split(`\n## ${heading}\n`);
  const [, table = ""] = /\n\|[ |:-]*\|\n((?:\|.*\|\n)*)/.exec(section.split("\n## ")[0] ?? "") ?? [];
  return table
    .trim()
    .split("\n")
    .map((row) => row.slice(2, -2).split(" | "));
}
