import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
// Its programs, which may write to the folder, are killed before.
import "./program.ts";

const folders: string[] = [];
process.once("exit", () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});

/** Creates a folder that is removed when the process of the tests ends. */
export function temporaryFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), `linkgate-${name}-`)));
  folders.push(folder);
  return folder;
}
