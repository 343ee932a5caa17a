const ASCII_ONLY = /^\p{ASCII}*$/u;

/**
 * Folds the case of each character of a text, the same on every database: ASCII and other letters to their lowercase,
 * variants such as `ς` to the usual form. One character stays one character, and ASCII letters match only ASCII letters.
 */
export function foldText(text: string): string {
  if (ASCII_ONLY.test(text)) return text.toLowerCase();
  return [...text].map(foldCharacter).join("");
}

function foldCharacter(character: string): string {
  if (character <= "\x7f") return character.toLowerCase();
  const upper = keepSingle(character.toUpperCase(), character);
  return keepSingle(upper.toLowerCase(), upper);
}

function keepSingle(changed: string, character: string): string {
  const isSingle = [...changed].length === 1;
  return isSingle && changed > "\x7f" ? changed : character;
}
