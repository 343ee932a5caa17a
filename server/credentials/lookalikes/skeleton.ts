import { normalizeText } from "../../../resources/http/text.ts";
import table from "./table.json" with { type: "json" };

// What people write instead of a letter, and what looks like one though Unicode's data doesn't say so. The last of the
// first line is the part of a Hangul syllable.
const WRITTEN: Record<string, string> = {
  l: "i1|!丨│ⲓ\u1175",
  n: "п",
  k: "ҡ",
  g: "9q",
  a: "4@",
  t: "7+",
  e: "3єε",
};
const LETTER_OF = new Map(
  [...Object.entries(table), ...Object.entries(WRITTEN)].flatMap(([letter, others]) =>
    [...others].map((other) => [other, letter] as const),
  ),
);

/**
 * Returns a text in which names that look alike are equal (UTS #39 §4), as far as the name of this service has
 * their letters: without case, marks, spaces and punctuation. Empty for more than `max` characters.
 */
export function skeletonOf(text: string, max: number): string {
  const plain = withoutMarks(normalizeText(text, "NFKD", max) ?? "");
  return [...plain]
    .map((character) => LETTER_OF.get(character) ?? character)
    .join("")
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/** Expects a decomposed text. */
export function withoutMarks(text: string): string {
  return text.toLowerCase().replace(/\p{M}/gu, "");
}
