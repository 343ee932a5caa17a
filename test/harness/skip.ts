import test from "ava";

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  // Reason: a machine without Chromium, Redis or Python can still run the rest. CI has all of them.
  test.skip(`${title} — SKIPPED: ${missing}`, (t) => t.pass());
}
