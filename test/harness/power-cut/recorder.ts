import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { compilePreload } from "../preload.ts";

export type Recorder = NonNullable<ReturnType<typeof createRecorder>>;

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

/**
 * Creates a recorder of what programs do to the files of `folder`, and of what they acknowledge, in one order; undefined if
 * this machine can't compile it.
 */
export function createRecorder() {
  const preload = compilePreload(path.join(import.meta.dirname, "record.c"));
  if (!preload) return undefined;
  const [folder, log] = [path.join(preload.folder, "disk"), path.join(preload.folder, "log")];
  mkdirSync(folder);
  writeFileSync(log, "");
  return {
    folder,
    log,
    environment: { LD_PRELOAD: preload.library, RECORD_FOLDER: folder, RECORD_LOG: log },
    acknowledge(what: string) {
      const text = Buffer.from(what);
      const header = Buffer.alloc(HEADER_BYTES);
      header.writeUInt32LE(KIND.acknowledged, 0);
      header.writeUInt32LE(text.length, 4);
      appendFileSync(log, Buffer.concat([header, text]));
    },
  };
}
