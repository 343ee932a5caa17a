import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, rmSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { closeAfterTests } from "../closing.ts";
import { temporaryFolder } from "../program.ts";

export type SmallDisk = NonNullable<ReturnType<typeof mountSmallDisk>>;

const CHUNKS = [2 ** 20, 4096].map((bytes) => Buffer.alloc(bytes));

/** Mounts a disk in memory of a size such as `16k`; undefined if this process may not mount or the system has no tmpfs. */
export function mountSmallDisk(size: string) {
  const folder = temporaryFolder("disk");
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", folder]);
  if (status !== 0) return undefined;
  const ballast = path.join(folder, "ballast");

  return {
    folder,
    fill(bytesLeft = 0) {
      for (const chunk of CHUNKS) appendUntilFull(ballast, chunk);
      truncateSync(ballast, Math.max(0, statSync(ballast).size - bytesLeft));
    },
    empty: () => rmSync(ballast, { force: true }),
    unmount: closeAfterTests(() => execFileSync("umount", ["--lazy", folder])),
  };
}

function appendUntilFull(file: string, chunk: Buffer) {
  try {
    for (;;) appendFileSync(file, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  }
}
