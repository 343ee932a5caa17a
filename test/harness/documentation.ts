import { readFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./program.ts";

/** What readers search the documentation for → the page, or one of the pages, that has to come first. */
export const ANSWERS: Record<string, RegExp> = {
  token: /^\/docs\/quick-start#get-a-token$/,
  "python token": /^\/docs\/quick-start#get-a-token$/,
  "refresh token": /^\/docs\/authentication#get-a-token-for-a-user$/,
  "rotate secret": /^\/docs\/(management\/client#rotate-the-client-secret|api\/rotate-webhook-secret)$/,
  "webhook signature": /^\/docs\/webhooks#verify-signatures$/,
  "verify signature": /^\/docs\/webhooks#verify-signatures$/,
  "rate limit": /^\/docs\/rate-limits\b/,
  429: /^\/docs\/rate-limits#handle-429-responses$/,
  retries: /^\/docs\/(webhooks|requests)#.*retries$/,
  countries: /^\/docs\/analytics#countries$/,
  device: /^\/docs\/(analytics|authorization)#devices-/,
  "device flow": /^\/docs\/authorization#devices-without-a-browser$/,
  utm: /^\/docs\/(analytics|links)#/,
  "expire link": /^\/docs\/links#limit-when-and-how-often-a-link-works$/,
  "custom domain": /^\/docs\/custom-domains\b/,
  "import bitly": /^\/docs\/import\b/,
  "github actions": /^\/docs\/workload-identity\b/,
  slug_taken: /^\/docs\/errors\/slug_taken$/,
  docker: /^\/docs\/operate\/deploy\b/,
  backup: /^\/docs\/operate\/backup\b/,
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
