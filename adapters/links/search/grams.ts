import type { LinkFilter } from "../../../resources/links/types.ts";
import { foldCharacter } from "./fold.ts";

/** What a search looks at in a link. */
export type SearchedLink = {
  url: string;
  slug: string;
  title: string | null;
  tags: string[];
  archived: boolean;
};

const GRAM = 3;
const SHORT = 1;
const LONG = 2;
const TAG = 3;
const STATE = 4;
// More would select hardly fewer links.
const MAX_GRAMS = 24;

/** Whether a gram has fewer than three characters, so a list of the links that contain it would be long. */
export type AddGram = (gram: number, isShort: boolean) => void;

/** Adds the grams of a link: each sequence of one to three characters in its texts, each tag, and whether it is archived. */
export function addGrams({ url, slug, title, tags, archived }: SearchedLink, add: AddGram): void {
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
  add(stateGram(archived), false);
}

/** Returns grams that each link has that matches the filter, those that select most first. */
export function gramsOf({ search, tag, archived }: LinkFilter): number[] {
  return [
    ...(tag === undefined ? [] : [tagGram(tag)]),
    ...(archived === undefined ? [] : [stateGram(archived)]),
    ...(search === undefined ? [] : textGrams(search)),
  ];
}

/** Returns grams of a text, in an order that begins with some that are far apart. */
function textGrams(search: string): number[] {
  const characters = [...search].map(fold);
  if (characters.length < GRAM) return [hash(SHORT, ...characters)];
  const last = characters.length - GRAM;
  const starts = [0, Math.floor(last / 3), Math.floor((last * 2) / 3), last];
  const step = Math.ceil((last + 1) / (MAX_GRAMS - starts.length));
  for (let start = 0; start <= last; start += step) starts.push(start);
  return [...new Set(starts)].map((start) => hash(LONG, ...characters.slice(start, start + GRAM)));
}

/** Returns the gram of a tag, which is matched as a whole. */
function tagGram(tag: string): number {
  return hash(TAG, ...[...tag].map((character) => character.codePointAt(0) as number));
}

function stateGram(archived: boolean): number {
  return hash(STATE, Number(archived));
}

function fold(character: string): number {
  return foldCharacter(character).codePointAt(0) as number;
}

/** Returns an unsigned 32-bit hash (FNV-1a over whole characters, with a final mix). Collisions only select more links. */
function hash(kind: number, ...characters: number[]): number {
  let value = 0x811c9dc5 ^ kind;
  for (const character of characters) value = Math.imul(value ^ character, 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
