const ASCII_ONLY = /^\p{ASCII}*$/u;
const MAY_FOLD = /\p{Changes_When_Casemapped}/u;
const LAST_CASED = 0x1ffff;

/**
 * Folds the case of a character, the same on every database: ASCII and other letters to their lowercase, variants such as
 * `ς` to the usual form. One character stays one character, and ASCII letters match only ASCII letters.
 */
export function foldCharacter(character: string): string {
  if (character <= "\x7f") return character.toLowerCase();
  const upper = keepSingle(character.toUpperCase(), character);
  return keepSingle(upper.toLowerCase(), upper);
}

function keepSingle(changed: string, character: string): string {
  const isSingle = [...changed].length === 1;
  return isSingle && changed > "\x7f" ? changed : character;
}

/** Folds the case of each character of a text. */
export function foldText(text: string): string {
  if (ASCII_ONLY.test(text)) return text.toLowerCase();
  return [...text].map(foldCharacter).join("");
}

let variants: Map<string, string[]> | undefined;

/** Returns the other characters outside of ASCII that fold to a folded character. */
export function variantsOf(folded: string): string[] {
  variants ??= findVariants();
  return variants.get(folded) ?? [];
}

function findVariants(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (let code = 0x80; code <= LAST_CASED; code++) {
    const character = String.fromCodePoint(code);
    if (!MAY_FOLD.test(character)) continue;
    const folded = foldCharacter(character);
    if (folded !== character) found.set(folded, [...(found.get(folded) ?? []), character]);
  }
  return found;
}
