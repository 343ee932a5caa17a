import { statSync } from "node:fs";

/** The write-ahead log of an open database. */
export type LogFile = { name: string; device: number; inode: number };

/** Finds the log of an open database, which its first connection has created. */
export function findLog(filename: string): LogFile {
  const name = `${filename}-wal`;
  const { dev, ino } = statSync(name);
  return { name, device: dev, inode: ino };
}

/**
 * Checks that the log is still the one that this process opened. Nothing that is written to a deleted file survives the
 * process.
 * @throws LostLog if another program has deleted or replaced it
 */
export function verifyLog({ name, device, inode }: LogFile): void {
  const found = statSync(name, { throwIfNoEntry: false });
  if (found?.ino !== inode || found.dev !== device) {
    const error = new Error(`another program deleted or replaced ${name}`);
    throw Object.assign(error, { code: "ERR_LOG_LOST" });
  }
}
