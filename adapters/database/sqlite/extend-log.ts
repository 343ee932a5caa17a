import { closeSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, statfsSync, writeSync } from "node:fs";
import path from "node:path";
import type Sqlite from "better-sqlite3";
import { rollBack } from "./connection.ts";

// How much of the log is preallocated after its last frame.
const AHEAD_BYTES = 64 * 2 ** 20;
// A commit that follows waits for the disk to write as much.
const PIECE = Buffer.alloc(2 ** 20);
// How many times as much must be free.
const SPARE = 10;
const FRAME_HEADER_BYTES = 24;
// The disk is full, or a quota or a file-size limit is reached. A limit may also cut a write short.
const LIMIT_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

const ATTEMPTS = 500;
const PAUSE_MS = 2;

/**
 * Extends the write-ahead log with zeros, up to `AHEAD_BYTES` after its last frame, if the disk has much more space than
 * that. While the log grows, each sync also writes the size of the file, which takes about twice as long. A reader takes
 * no zeros for a frame, because a frame repeats numbers of the log's header and has a page number above zero.
 *
 * Each piece is written at the end of the file, while this connection holds the write lock: without it, the zeros could
 * overwrite a commit.
 * @param frames the number of frames in the log
 */
export function extendLog(connection: Sqlite.Database, filename: string, frames: number): void {
  const pageBytes = connection.pragma("page_size", { simple: true }) as number;
  const target = frames * (pageBytes + FRAME_HEADER_BYTES) + AHEAD_BYTES;
  const log = openSync(`${filename}-wal`, "r+");
  try {
    while (fstatSync(log).size < target && hasSpace(filename)) {
      if (!lockForWriting(connection)) return;
      try {
        if (!appendPiece(log)) return;
      } finally {
        rollBack(connection);
      }
      // Before the next piece, so that no commit waits for several.
      fdatasyncSync(log);
    }
  } finally {
    closeSync(log);
  }
}

/** Returns whether a piece was appended. Otherwise, the log is as before. */
function appendPiece(log: number): boolean {
  const { size } = fstatSync(log);
  let written = 0;
  try {
    written = writeSync(log, PIECE, 0, PIECE.length, size);
  } catch (error) {
    if (!LIMIT_CODES.has(String((error as { code?: string }).code))) throw error;
  } finally {
    if (written < PIECE.length) ftruncateSync(log, size);
  }
  return written === PIECE.length;
}

function hasSpace(filename: string): boolean {
  const { bavail, bsize } = statfsSync(path.dirname(filename));
  return bavail * bsize > SPARE * AHEAD_BYTES;
}

/** Takes the write lock, which other connections hold for fractions of a millisecond. Returns whether it could. */
function lockForWriting(connection: Sqlite.Database): boolean {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      connection.exec("BEGIN IMMEDIATE");
      return true;
    } catch (error) {
      if ((error as { code?: string }).code !== "SQLITE_BUSY") throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
  }
  return false;
}
