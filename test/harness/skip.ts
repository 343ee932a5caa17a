import test from "ava";

const filesWithSkips = new Set<string>();

/** Skips a test that this machine can't run. The title says what is missing; a silent skip would look like a pass. */
export function skip(title: string, missing: string): void {
  // Skipped only where a program or database is missing, which a developer need not install. CI has everything: its stages
  // `rest` and `browser` run what `newcomer` skips. Only a skip of ava's is counted and listed.
  test.skipIf(missing !== "")(`${title} — SKIPPED: ${missing}`, (t) => t.pass());
  // In a file whose tests are all skipped, ava runs no hooks either, and what the file opened would stay open.
  if (!filesWithSkips.has(test.meta.file))
    test("what was opened for skipped tests is closed", (t) => t.pass());
  filesWithSkips.add(test.meta.file);
}
