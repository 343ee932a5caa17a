import { hash, verify } from "@node-rs/argon2";
import { createHashQueue, type Origin } from "./hash-queue.ts";

// OWASP Password Storage Cheat Sheet: argon2id (the default of the package), 19 MiB, two passes, one lane.
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
// A PHC string of zeros for unknown users, which costs as much to verify as a real one.
const DUMMY_HASH = `$argon2id$v=19$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}$${unpadded(16)}$${unpadded(32)}`;

/** Hashes and verifies passwords, a few concurrently. */
export type Passwords = {
  /** Returns a PHC string. @throws PasswordQueueFull */
  hash(password: string, from?: Origin): Promise<string>;
  /** Does the same work for `null`, so an unknown user takes as long as a wrong password. @throws PasswordQueueFull */
  verify(hash: string | null, password: string, from?: Origin): Promise<boolean>;
};

/** Creates the hasher of a process. @param isLimited false lets one network take every place of its queue */
export function createPasswords(isLimited = true): Passwords {
  const run = createHashQueue(isLimited);

  return {
    hash: (password, from) => run(() => hash(password, PARAMETERS), from),
    verify: async (stored, password, from) => {
      const matches = await run(() => verify(stored ?? DUMMY_HASH, password), from);
      return matches && stored !== null;
    },
  };
}

function unpadded(length: number): string {
  return Buffer.alloc(length).toString("base64").replace(/=+$/, "");
}
