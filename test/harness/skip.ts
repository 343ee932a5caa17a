import test from "ava";

const filesWithSkips = new Set<string>();

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  // Only a skip of ava's is counted and listed as skipped. CI installs what is missing, and skips nothing in the end:
  // `.ci/run rest` and `.ci/run browser` run there what `newcomer` skips.
  test.skipIf(missing !== "")(`${title} — SKIPPED: ${missing}`, (t) => t.pass());
  // In a file whose tests are all skipped, ava runs no hooks either, and what the file opened would stay open.
  if (!filesWithSkips.has(test.meta.file))
    test("what was opened for skipped tests is closed", (t) => t.pass());
  filesWithSkips.add(test.meta.file);
}
