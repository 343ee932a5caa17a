import { z } from "zod";
import { hasAtMost } from "../../resources/http/text.ts";
import { checkText } from "../../resources/http/validate.ts";

/** In characters. */
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

/** Composes the name (Unicode NFC) and removes spaces at both ends. */
export function normalizeName(name: string): string {
  return name.isWellFormed() ? name.normalize("NFC").trim() : name;
}

export function removeInvisible(text: string): string {
  return [...normalizeName(text.toWellFormed())].filter((character) => !INVISIBLE.test(character)).join("");
}

export const nameSchema = z
  .string({ error: `must be 1 to ${NAME_MAX} characters long` })
  .transform(normalizeName)
  .check(checkText(validateName));

// Characters that look like those of “linkgate” (Unicode TR39 §4). Among themselves, l, i and 1 look alike as well.
const LOOKALIKES: Record<string, string> = {
  l: "i1|!ıɩɪіιӏןǀⲓ",
  n: "пոռηñ",
  k: "кκĸқҟҡ",
  g: "9ɡցԍq",
  a: "4@аαɑ",
  t: "7+тτ",
  e: "3еєҽεε",
};
const LETTER_OF = new Map(
  Object.entries(LOOKALIKES).flatMap(([letter, others]) => [...others].map((other) => [other, letter])),
);
const SERVICE = skeletonOf("linkgate");

export function resemblesService(name: string): boolean {
  return skeletonOf(name).includes(SERVICE);
}

/** Texts that look alike become equal: without case, marks, spaces and punctuation. */
function skeletonOf(text: string): string {
  const characters = [...text.normalize("NFKD").toLowerCase().replace(/\p{M}/gu, "")];
  return characters
    .map((character) => LETTER_OF.get(character) ?? character)
    .join("")
    .replace(/[^\p{L}\p{N}]/gu, "");
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
  const plain = username.normalize("NFKC");
  const folded = plain.toLowerCase();
  if (RESERVED.has(folded)) return "This username is reserved. Choose another one.";
  const fits = [...folded].length <= USERNAME_MAX;
  if (fits && USERNAME.test(username) && USERNAME.test(plain)) return undefined;
  return "The username must have 3 to 64 letters, digits and . _ @ + -, with a letter or digit at both ends.";
}
