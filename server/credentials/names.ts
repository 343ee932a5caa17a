import { z } from "zod";
import { hasAtMost } from "../../resources/http/text.ts";

/** The maximum length of a name, in characters. */
export const NAME_MAX = 100;

// They can change how the text around a name reads. Emoji need U+FE0F.
const INVISIBLE = /[[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]--\uFE0F]/v;
// Scripts need up to three. More of them cover the lines above and below.
const STACKED_MARKS = /[\p{M}--\uFE0F]{4}/v;

/**
 * Returns what is wrong with the characters of a name. Names are shown to users of other organizations, such as on the
 * consent page, so none may hide something or change the order of the text around it (Unicode TR36 §2).
 */
export function validateCharacters(name: string): string | undefined {
  if (!name.isWellFormed()) return "must be valid Unicode";
  if (INVISIBLE.test(name)) return "must not contain control characters or invisible characters";
  if (STACKED_MARKS.test(name)) return "must not have more than 3 combining marks in a row";
  return undefined;
}

/** Returns what is wrong with the name of an organization or an app, in the form of `normalizeName`. */
export function validateName(name: string, max = NAME_MAX): string | undefined {
  if (name === "" || !hasAtMost(max, name)) return `must be 1 to ${max} characters long`;
  return validateCharacters(name) ?? (resemblesService(name) ? NOT_OURS : undefined);
}

/** What is wrong with a name that could be taken for that of the service. */
export const NOT_OURS = "must not contain “linkgate”, the name of this service, or resemble it";

/** Returns a name as it is stored: composed (Unicode NFC), without spaces at both ends. */
export function normalizeName(name: string): string {
  return name.isWellFormed() ? name.normalize("NFC").trim() : name;
}

/** Returns a text of another service, such as the name of an identity, in a form that is safe to show. */
export function removeInvisible(text: string): string {
  return [...normalizeName(text.toWellFormed())].filter((character) => !INVISIBLE.test(character)).join("");
}

/** Accepts names of organizations and apps, normalized. */
export const nameSchema = z
  .string({ error: `must be 1 to ${NAME_MAX} characters long` })
  .transform(normalizeName)
  .check((context) => {
    const message = validateName(context.value);
    if (message) context.issues.push({ code: "custom", input: context.value, message });
  });

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

/** Returns whether a name contains that of the service, or text that looks like it. */
export function resemblesService(name: string): boolean {
  return skeletonOf(name).includes(SERVICE);
}

/** Returns a text such that texts that look alike are equal: without case, marks, spaces and punctuation. */
function skeletonOf(text: string): string {
  const characters = [...text.normalize("NFKD").toLowerCase().replace(/\p{M}/gu, "")];
  return characters
    .map((character) => LETTER_OF.get(character) ?? character)
    .join("")
    .replace(/[^\p{L}\p{N}]/gu, "");
}
