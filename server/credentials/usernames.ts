import { resemblesService } from "./names.ts";

// Letters and digits of any script, but no spaces or invisible characters, which would make names look alike.
const USERNAME = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{1,62}[\p{L}\p{N}]$/u;

const USERNAME_MAX = 64;

// Names of the administration command and of the service in the audit log.
const RESERVED = new Set(["operator", "system"]);

/** Returns whether a user may have this name. */
export function isPossibleUsername(username: string): boolean {
  return validateUsername(username) === undefined;
}

/** Returns why a user can't choose a username; undefined if it can be chosen. */
export function validateNewUsername(username: string): string | undefined {
  const message = validateUsername(username);
  if (message) return message;
  return resemblesService(username) ? "This username is reserved. Choose another one." : undefined;
}

/** Returns why a text can't be a username; undefined if it can. */
export function validateUsername(username: string): string | undefined {
  // Usernames are compared in this form, so it must be valid as well. Folding may make it longer.
  const plain = username.normalize("NFKC");
  const folded = plain.toLowerCase();
  if (RESERVED.has(folded)) return "This username is reserved. Choose another one.";
  const fits = [...folded].length <= USERNAME_MAX;
  if (fits && USERNAME.test(username) && USERNAME.test(plain)) return undefined;
  return "The username must have 3 to 64 letters, digits and . _ @ + -, with a letter or digit at both ends.";
}
