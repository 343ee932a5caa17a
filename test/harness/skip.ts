import test from "ava";

const filesWithSkips = new Set<string>();

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  const marked = `${title} — SKIPPED: ${missing}`;
  test.skipIf(missing !== "")(marked, (t) => t.pass()); // only where a program is missing; CI has all, and runs it
  // In a file whose tests are all skipped, ava runs no hooks either, and what the file opened would stay open.
  if (!filesWithSkips.has(test.meta.file))
    test("what was opened for skipped tests is closed", (t) => t.pass());
  filesWithSkips.add(test.meta.file);
}
