import { hash, verify } from "@node-rs/argon2";
import { dictionary } from "@zxcvbn-ts/language-common";
import pLimit from "p-limit";

// OWASP Password Storage Cheat Sheet: argon2id (the default of the package), 19 MiB, two passes, one lane.
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const MIN_LENGTH = 8;
const MAX_LENGTH = 128;
// Each hash takes 19 MiB and one core; more at a time would only make everybody wait longer.
const CONCURRENCY = 2;
const MAX_WAITING = 50;

/** Too many passwords are being checked; the caller may try again. */
export class Busy extends Error {
  override readonly name = "Busy";
}

/** Hashes and checks passwords, a few at a time. */
export type Passwords = {
  /** @returns PHC string. @throws Busy */
  hash(password: string): Promise<string>;
  /** Takes the same work for `null`, so that an unknown user cannot be told from a wrong password. @throws Busy */
  verify(hash: string | null, password: string): Promise<boolean>;
};

/** Makes the hasher of one process. */
export function createPasswords(): Passwords {
  const limit = pLimit(CONCURRENCY);
  const dummy = limit(() => hash("nobody has this password", PARAMETERS));

  function run<T>(work: () => Promise<T>): Promise<T> {
    if (limit.pendingCount >= MAX_WAITING)
      return Promise.reject(new Busy("too many passwords are being checked"));
    return limit(work);
  }

  return {
    hash: (password) => run(() => hash(password, PARAMETERS)),
    verify: async (stored, password) => {
      const against = stored ?? (await dummy);
      const isRight = await run(() => verify(against, password));
      return isRight && stored !== null;
    },
  };
}

const COMMON = new Set(dictionary["passwords-common"].map((password) => password.toLowerCase()));
const OWN_WORDS = ["linkgate"];

/** Why a password cannot be set; nothing when it can. No rules of composition (OWASP ASVS 5.0 V6.2.5). */
export function refusePassword(password: string, username: string): string | undefined {
  const length = [...password].length;
  if (length < MIN_LENGTH || length > MAX_LENGTH)
    return `A password has ${MIN_LENGTH} to ${MAX_LENGTH} characters.`;
  const folded = password.toLowerCase();
  if (COMMON.has(folded)) return "This is one of the most common passwords: choose another one.";
  if ([...OWN_WORDS, username.toLowerCase()].some((word) => folded === word || folded === `${word}123`)) {
    return "The password may not be the user name or the name of this service.";
  }
  return undefined;
}

// Letters and digits of any script, so that a name can be read; no spaces at the ends, no invisible characters.
const USERNAME = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{1,62}[\p{L}\p{N}]$/u;

const USERNAME_MAX = 64;
// What the audit log calls the administration command and the service itself.
const RESERVED = new Set(["operator", "system"]);

/** Why a name cannot be a user name; nothing when it can. */
export function refuseUsername(username: string): string | undefined {
  // The form in which it is compared must be a name as well, and fit: some letters stand for several.
  const plain = username.normalize("NFKC");
  const folded = plain.toLowerCase();
  if (RESERVED.has(folded)) return "This user name is reserved: choose another one.";
  const fits = [...folded].length <= USERNAME_MAX;
  if (fits && USERNAME.test(username) && USERNAME.test(plain)) return undefined;
  return "A user name has 3 to 64 letters, digits and . _ @ + -, with a letter or digit at both ends.";
}
