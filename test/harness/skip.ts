import test from "ava";

let isFirst = true;

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  // biome-ignore lint/suspicious/noSkippedTests: CI has every program; other machines run what they can, and list the rest.
  test.skip(`${title} — SKIPPED: ${missing}`, (t) => t.pass());
  // In a file whose tests are all skipped, ava runs no hooks either, and what the file opened would keep it from exiting.
  if (isFirst) test("what was opened for skipped tests is closed", (t) => t.pass());
  isFirst = false;
}
