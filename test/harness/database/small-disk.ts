import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** A small file system. */
export type SmallDisk = {
  folder: string;
  /** Fills the disk, except for this many bytes. */
  fill(bytesLeft?: number): void;
  /** Frees the space that `fill` used. */
  empty(): void;
  unmount(): void;
};

const CHUNKS = [2 ** 20, 4096].map((bytes) => Buffer.alloc(bytes));

/** Mounts a disk in memory of a size such as `16k`; undefined if this process may not mount or the system has no tmpfs. */
export function mountSmallDisk(size: string): SmallDisk | undefined {
  const folder = mkdtempSync(path.join(tmpdir(), "linkgate-disk-"));
  try {
    run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder);
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  const ballast = path.join(folder, "ballast");

  return {
    folder,
    fill(bytesLeft = 0) {
      for (const chunk of CHUNKS) appendUntilFull(ballast, chunk);
      truncateSync(ballast, Math.max(0, statSync(ballast).size - bytesLeft));
    },
    empty: () => rmSync(ballast, { force: true }),
    unmount() {
      run("umount", "--lazy", folder);
      rmSync(folder, { recursive: true });
    },
  };
}

function run(command: string, ...args: string[]) {
  execFileSync(command, args, { stdio: "ignore" });
}

function appendUntilFull(file: string, chunk: Buffer) {
  try {
    for (;;) appendFileSync(file, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
