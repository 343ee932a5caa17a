import test from "ava";

let isFirst = true;

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  // Not a disabled test: this machine has no such program or database, so the test would only fail. CI installs them all,
  // and `.ci/run rest` and `.ci/run browser` run there what `newcomer` skips.
  // biome-ignore lint/suspicious/noSkippedTests: only ava's skip lists a test as skipped, with the reason in its title.
  test.skip(`${title} — SKIPPED: ${missing}`, (t) => t.pass()); // listed by the report with what is missing
  // In a file whose tests are all skipped, ava runs no hooks either, and what the file opened would keep it from exiting.
  if (isFirst) test("what was opened for skipped tests is closed", (t) => t.pass());
  isFirst = false;
}
