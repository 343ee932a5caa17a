import { hash, verify } from "@node-rs/argon2";
import { dictionary } from "@zxcvbn-ts/language-common";
import pLimit from "p-limit";
import { UNAVAILABLE } from "../../resources/http/unavailable.ts";

// OWASP Password Storage Cheat Sheet: argon2id (the default of the package), 19 MiB, two passes, one lane.
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
// A PHC string of zeros for unknown users, which costs as much to verify as a real one.
const DUMMY_HASH = `$argon2id$v=19$m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}$${unpadded(16)}$${unpadded(32)}`;
const MIN_LENGTH = 8;
const MAX_LENGTH = 128;
// Each hash takes 19 MiB and one core. More concurrency would only make every request slower.
const CONCURRENCY = 2;
const MAX_WAITING = 50;

/** Too many passwords are being hashed; try again later. */
export class PasswordQueueFull extends Error {
  override readonly name = "PasswordQueueFull";
  readonly code = UNAVAILABLE;
}

/** Hashes and verifies passwords, a few concurrently. */
export type Passwords = {
  /** Returns a PHC string. @throws PasswordQueueFull */
  hash(password: string): Promise<string>;
  /** Does the same work for `null`, so an unknown user takes as long as a wrong password. @throws PasswordQueueFull */
  verify(hash: string | null, password: string): Promise<boolean>;
};

/** Creates the hasher of a process. */
export function createPasswords(): Passwords {
  const limit = pLimit(CONCURRENCY);

  function run<T>(work: () => Promise<T>): Promise<T> {
    if (limit.pendingCount >= MAX_WAITING)
      return Promise.reject(new PasswordQueueFull("too many passwords are being hashed"));
    return limit(work);
  }

  return {
    hash: (password) => run(() => hash(password, PARAMETERS)),
    verify: async (stored, password) => {
      const matches = await run(() => verify(stored ?? DUMMY_HASH, password));
      return matches && stored !== null;
    },
  };
}

const COMMON = new Set(dictionary["passwords-common"].map((password) => password.toLowerCase()));
const SERVICE_NAMES = ["linkgate"];

/** Returns why a password can't be used; undefined if it can. No composition rules (OWASP ASVS 5.0 V6.2.5). */
export function validatePassword(password: string, username: string): string | undefined {
  const length = [...password].length;
  if (length < MIN_LENGTH || length > MAX_LENGTH)
    return `The password must have ${MIN_LENGTH} to ${MAX_LENGTH} characters.`;
  const folded = password.toLowerCase();
  if (COMMON.has(folded)) return "This password is too common. Choose another one.";
  if ([...SERVICE_NAMES, username.toLowerCase()].some((word) => folded === word || folded === `${word}123`)) {
    return "The password must not be the username or the name of this service.";
  }
  return undefined;
}

function unpadded(length: number): string {
  return Buffer.alloc(length).toString("base64").replace(/=+$/, "");
}
