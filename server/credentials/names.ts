import { z } from "zod";
import { hasAtMost, normalizeText } from "../../resources/http/text.ts";
import { checkText } from "../../resources/http/validate.ts";
import { skeletonOf } from "./lookalikes/skeleton.ts";

export const NAME_MAX = 100;

// They can change how the text around a name reads. Emoji need U+FE0F.
const INVISIBLE = /[[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]--\uFE0F]/v;
// Scripts need up to three. More of them cover the lines above and below.
const STACKED_MARKS = /[\p{M}--\uFE0F]{4}/v;

/** Other organizations see names, so none may hide or reorder the text around it (Unicode TR36 §2). */
export function validateCharacters(name: string): string | undefined {
  if (!name.isWellFormed()) return "must be valid Unicode";
  if (INVISIBLE.test(name)) return "must not contain control characters or invisible characters";
  if (STACKED_MARKS.test(name)) return "must not have more than 3 combining marks in a row";
  return undefined;
}

export function validateName(name: string, max = NAME_MAX): string | undefined {
  if (name === "" || !hasAtMost(max, name)) return `must be 1 to ${max} characters long`;
  return validateCharacters(name) ?? (resemblesService(name) ? NOT_OURS : undefined);
}

export const NOT_OURS = "must not contain “linkgate”, the name of this service, or resemble it";

/** Composes the name (Unicode NFC) and removes spaces at both ends. One that is too long or malformed stays as it is. */
export function normalizeName(name: string): string {
  const composed = name.isWellFormed() ? normalizeText(name, "NFC", NAME_MAX) : undefined;
  return composed?.trim() ?? name;
}

export function removeInvisible(text: string): string {
  return [...normalizeName(text.toWellFormed())].filter((character) => !INVISIBLE.test(character)).join("");
}

export const nameSchema = z
  .string({ error: `must be 1 to ${NAME_MAX} characters long` })
  .transform(normalizeName)
  .check(checkText(validateName));

const SERVICE = skeletonOf("linkgate", NAME_MAX);

export function resemblesService(name: string): boolean {
  return skeletonOf(name, NAME_MAX).includes(SERVICE);
}

// Letters and digits of any script, but no spaces or invisible characters, which would make names look alike.
const USERNAME = /^[\p{L}\p{N}][\p{L}\p{N}._@+-]{1,62}[\p{L}\p{N}]$/u;

const USERNAME_MAX = 64;

// Names of the administration command and of the service in the audit log.
const RESERVED = new Set(["operator", "system"]);

export function isPossibleUsername(username: string): boolean {
  return validateUsername(username) === undefined;
}

export function validateNewUsername(username: string): string | undefined {
  const message = validateUsername(username);
  if (message) return message;
  return resemblesService(username) ? "This username is reserved. Choose another one." : undefined;
}

export function validateUsername(username: string): string | undefined {
  // Usernames are compared in this form, so it must be valid as well. Folding may make it longer.
  const plain = normalizeText(username, "NFKC", USERNAME_MAX) ?? "";
  const folded = plain.toLowerCase();
  if (RESERVED.has(folded)) return "This username is reserved. Choose another one.";
  const fits = [...folded].length <= USERNAME_MAX;
  if (fits && USERNAME.test(username) && USERNAME.test(plain)) return undefined;
  return "The username must have 3 to 64 letters, digits and . _ @ + -, and start and end with a letter or digit.";
}

const EMAIL_RULE = { error: "must be an email address, such as ada@example.com" };

/** Lower case, because limits must not depend on the spelling; ASCII only, so it has no lookalikes. */
export const emailAddress = z
  .string(EMAIL_RULE)
  .max(254, EMAIL_RULE)
  .trim()
  .toLowerCase()
  .pipe(z.email(EMAIL_RULE));
