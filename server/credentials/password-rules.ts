import { hasAtMost, normalizeText } from "../../resources/http/text.ts";
import { isBreached } from "./breached-passwords/is-breached.ts";

const MIN_LENGTH = 8;
const MAX_LENGTH = 128;
const SERVICE_NAME = "linkgate";
// A name needs more than this many other characters to be part of a password, and a breached password more at its end.
const FILL_MAX = 5;
const NAME_MIN = 3;

export type PasswordOwner = { username: string; organizations?: readonly string[] };

/** No composition rules (OWASP ASVS 5.0 V6.2.5). */
export function validatePassword(password: string, owner: PasswordOwner): string | undefined {
  if (!hasAtMost(MAX_LENGTH, password) || lengthOf(password) < MIN_LENGTH)
    return `The password must have ${MIN_LENGTH} to ${MAX_LENGTH} characters.`;
  const name = findName(password, owner);
  if (name) return `The password must not be based on ${name}.`;
  if (isBreached(password) || isBreached(fold(password)))
    return "This password appears in lists of breached passwords. Choose another one.";
  if (simplify(password).some(isBreached))
    return "This password differs from a breached one only by a few digits or symbols. Choose another one.";
  return undefined;
}

/** OWASP ASVS 5.0 V6.2.11: the password may be a name with a few more characters. */
function findName(password: string, { username, organizations = [] }: PasswordOwner): string | undefined {
  const isMadeOf = (names: readonly string[]) => isMadeOfName(password, names);
  if (isMadeOf([SERVICE_NAME])) return "the name of this service";
  if (isMadeOf([username])) return "your username";
  return isMadeOf(organizations) ? "the name of your organization" : undefined;
}

function isMadeOfName(password: string, names: readonly string[]): boolean {
  const folded = fold(password);
  const forms = [folded, replaceLookalikes(folded)];
  return names
    .flatMap(formsOfName)
    .some((name) => forms.some((form) => form.includes(name) && lengthOf(form) - lengthOf(name) <= FILL_MAX));
}

/** Users write a name as it is, joined, each word, reversed or twice. */
function formsOfName(name: string): string[] {
  const folded = fold(name);
  const words = folded.split(/[^\p{L}\p{N}]+/u);
  const forms = [folded, words.join(""), ...words].filter((form) => lengthOf(form) >= NAME_MIN);
  return forms.flatMap((form) => [form, [...form].reverse().join(""), form.repeat(2)]);
}

/** Drops digits and symbols at the end, and replaces those that look like a letter. */
function simplify(password: string): string[] {
  const folded = fold(password);
  const [, base = ""] = new RegExp(`^(.*?)[^\\p{L}]{1,${FILL_MAX}}$`, "su").exec(folded) ?? [];
  return [base, replaceLookalikes(folded), replaceLookalikes(base)].filter(
    (form) => form !== folded && form !== "",
  );
}

const LOOKALIKES: Record<string, string> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
  "!": "i",
};

function replaceLookalikes(text: string): string {
  return text.replace(/[013457@$!]/g, (character) => LOOKALIKES[character] ?? character);
}

/** Returns nothing of a text that is too long for a password or a name. */
function fold(text: string): string {
  return normalizeText(text, "NFKC", MAX_LENGTH)?.toLowerCase() ?? "";
}

function lengthOf(text: string): number {
  return [...text].length;
}
