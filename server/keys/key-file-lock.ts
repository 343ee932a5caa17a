import { closeSync, openSync, unlinkSync } from "node:fs";

/** Another process is changing the key file. */
export class KeyFileBusy extends Error {
  override readonly name = "KeyFileBusy";
}

/**
 * Changes a key file while no other process does. Of two concurrent rotations, the second would otherwise replace the file
 * without the key of the first, and what that key encrypted would be lost.
 * @throws KeyFileBusy
 */
export async function lockKeyFile<Result>(file: string, change: () => Promise<Result>): Promise<Result> {
  const lock = `${file}.lock`;
  acquire(lock);
  try {
    return await change();
  } finally {
    unlinkSync(lock);
  }
}

function acquire(lock: string): void {
  try {
    closeSync(openSync(lock, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new KeyFileBusy(
      `Another command is changing the encryption keys. If none is running, delete ${lock} and try again.`,
    );
  }
}
