import { readFileSync } from "node:fs";
import type { TestResult } from "./report.ts";

/** A test that failed. `isDecided`: an assertion or an unexpected response failed, not the code of the test itself. */
type Failure = { title: string; isDecided: boolean; message: string };

/** What `--results` wrote of a run of tests. */
export type Report = { passed: string[]; failed: Failure[] };

// How a program fails whose code or environment is broken, and not its result.
const CODE_ERROR = /\b(TypeError|ReferenceError|SyntaxError)\b/;

/** Reads the results of a run. Crashes are among the failures, under a title that no test has. */
export function readResults(file: string): Report {
  const results = JSON.parse(readFileSync(file, "utf8")) as TestResult[];
  return {
    passed: results.filter(({ outcome }) => outcome === "passed").map(({ title }) => title),
    failed: results.filter(({ outcome }) => outcome === "failed").map(toFailure),
  };
}

function toFailure({ title, failure }: TestResult): Failure {
  const { name = "", message = "", details = [], isAssertion = false } = failure ?? {};
  return {
    title,
    message,
    isDecided: isAssertion || !CODE_ERROR.test([name, message, ...details].join("\n")),
  };
}
