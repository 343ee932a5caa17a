/** A test that failed. `isDecided`: an assertion or an unexpected response failed, not the code of the test itself. */
type Failure = { title: string; isDecided: boolean };

/** What a run of tests printed in TAP. Titles begin with the test file if there are several. */
export type Report = { passed: string[]; failed: Failure[] };

const RESULT = /^(not )?ok \d+ - (.*?)( # SKIP.*)?$/;
// How a program fails whose code or environment is broken, and not its result.
const CODE_ERROR = /^ +(TypeError|ReferenceError|SyntaxError)\b/m;

/** Reads the results of ava's TAP reporter. Crashes are among the failures, under a title that no test has. */
export function readTap(output: string): Report {
  const report: Report = { passed: [], failed: [] };
  for (const part of output.split(/^(?=(?:not )?ok \d+ - )/m)) {
    const [first = "", ...details] = part.split("\n");
    const [, isFailure, title = "", isSkipped] = RESULT.exec(first) ?? [];
    if (title === "" || isSkipped) continue;
    if (!isFailure) report.passed.push(title);
    else report.failed.push({ title, isDecided: !CODE_ERROR.test(detailsOf(details)) });
  }
  return report;
}

/** Returns the details of a failure, or nothing if an assertion compared values: these may look like errors. */
function detailsOf(lines: string[]): string {
  const end = lines.indexOf("  ...");
  const details = lines.slice(0, end === -1 ? undefined : end);
  return details.some((line) => line.startsWith("    assertion: ")) ? "" : details.join("\n");
}

/** Returns whether two titles are of one test. A run of one file doesn't name it, and one of several only in part. */
export function isSameTest(full: string, title: string): boolean {
  return full === title || full.endsWith(` › ${title}`);
}
