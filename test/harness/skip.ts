import test from "ava";

// A machine without Chromium or Redis can still run the rest; CI has both, and fails if anything was skipped.
/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  test.skip(`${title} — SKIPPED: ${missing}`, (t) => t.pass());
}
