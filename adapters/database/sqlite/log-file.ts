import { statSync } from "node:fs";

export type LogFile = { name: string; device: number; inode: number };

export function findLog(filename: string): LogFile {
  const name = `${filename}-wal`;
  const { dev, ino } = statSync(name);
  return { name, device: dev, inode: ino };
}

/** What is written to a deleted log doesn't survive the process. Throws LostLog. */
export function verifyLog({ name, device, inode }: LogFile): void {
  const found = statSync(name, { throwIfNoEntry: false });
  if (found?.ino !== inode || found.dev !== device) {
    const error = new Error(`another program deleted or replaced ${name}`);
    throw Object.assign(error, { code: "ERR_LOG_LOST" });
  }
}
