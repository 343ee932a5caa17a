import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { compilePreload } from "../preload.ts";

/** Records in one order what programs do to the files of a folder, and what they acknowledge. */
export type Recorder = {
  /** The folder whose files are recorded. */
  folder: string;
  /** A folder for everything else. */
  scratch: string;
  log: string;
  /** The environment of the programs. */
  environment: Record<string, string>;
  /** Records that a program has acknowledged something. */
  acknowledge(what: string): void;
  remove(): void;
};

/** The kinds of records, as in `record.c`. */
export const KIND = {
  created: 1,
  written: 2,
  truncated: 3,
  syncBegun: 4,
  syncEnded: 5,
  renamed: 6,
  linked: 7,
  unlinked: 8,
  folderCreated: 9,
  acknowledged: 100,
};

export const HEADER_BYTES = 32;

/** Creates a recorder; undefined if this machine can't compile it. */
export function createRecorder(): Recorder | undefined {
  const base = mkdtempSync(path.join(tmpdir(), "linkgate-power-cut-"));
  const remove = () => rmSync(base, { recursive: true, force: true });
  const library = compilePreload(path.join(import.meta.dirname, "record.c"), base);
  if (!library) {
    remove();
    return undefined;
  }
  const [folder, scratch, log] = ["disk", "scratch", "log"].map((name) => path.join(base, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(folder);
  mkdirSync(scratch);
  writeFileSync(log, "");
  return {
    folder,
    scratch,
    log,
    environment: { LD_PRELOAD: library, RECORD_FOLDER: folder, RECORD_LOG: log },
    acknowledge(what) {
      const text = Buffer.from(what);
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt32LE(KIND.acknowledged, 0);
      header.writeUInt32LE(text.length, 4);
      appendFileSync(log, Buffer.concat([header, text]));
    },
    remove,
  };
}
