import test from "ava";

/**
 * Skips a test that this machine or database can't run. The title says what is missing, and the run lists it: a silent skip
 * would look like a pass. In CI every program is installed, so the test runs there.
 */
export function skip(title: string, missing: string): void {
  const marked = `${title} — SKIPPED: ${missing}`;
  // biome-ignore lint/suspicious/noSkippedTests: the run lists it, and callers declare the test itself where nothing is missing
  test.skip(marked, (t) => t.pass());
}
