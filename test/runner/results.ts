import { readFileSync } from "node:fs";
import { textsOf } from "./messages.ts";
import type { TestResult } from "./report.ts";

/** What `--results` wrote. `isDecided`: an assertion or an unexpected response failed, not the code of the test itself. */
export type Report = { passed: string[]; failed: { title: string; message: string; isDecided: boolean }[] };

// How a program fails whose code or environment is broken, and not its result.
const CODE_ERROR = /\b(TypeError|ReferenceError|SyntaxError)\b/;

/** Reads the results of a run. Crashes are among the failures, under a title that no test has. */
export function readResults(file: string): Report {
  const results = JSON.parse(readFileSync(file, "utf8")) as TestResult[];
  return {
    passed: results.filter(({ outcome }) => outcome === "passed").map(({ title }) => title),
    failed: results
      .filter(({ outcome }) => outcome === "failed")
      .map(({ title, failure = {} }) => ({
        title,
        message: failure.message ?? "",
        isDecided:
          Boolean(failure.assertion) || !CODE_ERROR.test(`${failure.name}\n${textsOf(failure).join("\n")}`),
      })),
  };
}
