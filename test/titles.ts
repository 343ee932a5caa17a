// Compares the titles of two runs: node test/titles.ts before after
// Each file is written by `npm test -- --results=<file>`. Exits with 1 if a title was removed.

import { readFileSync } from "node:fs";
import type { TestResult } from "./runner/report.ts";

const [before, after] = process.argv.slice(2);
if (!before || !after) throw new Error("usage: node test/titles.ts before after");

const difference = countsOf(after);
for (const [title, count] of countsOf(before)) difference.set(title, (difference.get(title) ?? 0) - count);
let removed = 0;
let added = 0;
for (const [title, count] of [...difference].toSorted()) {
  for (let times = 0; times < Math.abs(count); times++) console.log(`${count < 0 ? "-" : "+"} ${title}`);
  if (count < 0) removed -= count;
  else added += count;
}
console.log(`${added} added, ${removed} removed`);
if (removed > 0) process.exitCode = 1;

function countsOf(file: string): Map<string, number> {
  const titles = (JSON.parse(readFileSync(file, "utf8")) as TestResult[]).map(({ title }) => title);
  return new Map(
    Object.entries(Object.groupBy(titles, (title) => title)).map(([title, all]) => [title, all?.length ?? 0]),
  );
}
