/** The text of a link that a search looks at. */
export type SearchedText = { url: string; slug: string; title: string | null };

const GRAM = 3;
const SHORT = 1;
const LONG = 2;
const TAG = 3;

/** Whether a gram has fewer than three characters, so a list of the links that contain it would be long. */
export type AddGram = (gram: number, isShort: boolean) => void;

/** Adds the grams of a link: each sequence of one, two and three characters in its texts, and each of its tags. */
export function addGrams({ url, slug, title }: SearchedText, tags: string[], add: AddGram): void {
  for (const text of [url, slug, title]) {
    if (text === null) continue;
    let [before, last] = [-1, -1];
    for (const character of text) {
      const next = fold(character);
      add(hash(SHORT, next), true);
      if (last >= 0) add(hash(SHORT, last, next), true);
      if (before >= 0) add(hash(LONG, before, last, next), false);
      [before, last] = [last, next];
    }
  }
  for (const tag of tags) add(tagGram(tag), false);
}

/** Returns grams that each link with this text in it has. More than a few would select hardly fewer links. */
export function gramsOf(search: string): number[] {
  const characters = [...search].map(fold);
  if (characters.length < GRAM) return [hash(SHORT, ...characters)];
  const last = characters.length - GRAM;
  const starts = new Set([0, Math.floor(last / 3), Math.floor((last * 2) / 3), last]);
  return [...starts].map((start) => hash(LONG, ...characters.slice(start, start + GRAM)));
}

/** Returns the gram of a tag, which is matched as a whole. */
export function tagGram(tag: string): number {
  return hash(TAG, ...[...tag].map((character) => character.codePointAt(0) as number));
}

/** Folds case at least as far as every database does: a gram may select too many links, but never too few. */
function fold(character: string): number {
  return character.toLowerCase().codePointAt(0) as number;
}

/** Returns an unsigned 32-bit hash (FNV-1a over whole characters, with a final mix). Collisions only select more links. */
function hash(kind: number, ...characters: number[]): number {
  let value = 0x811c9dc5 ^ kind;
  for (const character of characters) value = Math.imul(value ^ character, 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
