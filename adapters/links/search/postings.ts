import { setImmediate as nextTurn } from "node:timers/promises";
import { addGrams, type SearchedLink } from "./grams.ts";

/** The number of rows that hold the grams of a segment. A search reads only those of its own grams. */
export const BUCKETS = 256;

/** What a segment knows of a gram: the positions of its links, or that too many links have it to list them. */
export type Postings = number[] | "many" | undefined;

type SegmentLink = SearchedLink & { isDeleted: boolean };

// A gram in more than one of this many links is not listed: reading the whole segment is faster.
const LISTED_SHARE = 8;
// Links between two turns of the event loop.
const CHUNK = 64;
const HEADER_BYTES = 6;
const POSITION_BYTES = 2;

export function bucketOf(gram: number): number {
  return gram >>> 24;
}

/** Builds the buckets of a segment without blocking the event loop. */
export async function buildBuckets(links: SegmentLink[]): Promise<Buffer[]> {
  const buckets = Array.from({ length: BUCKETS }, () => new Map<number, number[] | "many">());
  const most = Math.floor(links.length / LISTED_SHARE);
  for (const [position, { isDeleted, ...link }] of links.entries()) {
    if (position % CHUNK === 0) await nextTurn();
    if (isDeleted) continue;
    addGrams(link, (gram, isShort) => {
      const bucket = buckets[bucketOf(gram)] as Map<number, number[] | "many">;
      const known = bucket.get(gram);
      if (known === "many") return;
      if (isShort || (known && known.length > most)) bucket.set(gram, "many");
      else if (!known) bucket.set(gram, [position]);
      else if (known.at(-1) !== position) known.push(position);
    });
  }
  return buckets.map(encode);
}

/** Encodes a bucket: for each gram its hash, the number of positions (0 for many), and the positions. */
function encode(bucket: Map<number, number[] | "many">): Buffer {
  const sizes = [...bucket.values()].map((positions) => (positions === "many" ? 0 : positions.length));
  const bytes = sizes.reduce((sum, size) => sum + HEADER_BYTES + size * POSITION_BYTES, 0);
  const buffer = Buffer.alloc(bytes);
  let offset = 0;
  for (const [gram, postings] of bucket) {
    const positions = postings === "many" ? [] : postings;
    offset = buffer.writeUInt32LE(gram, offset);
    offset = buffer.writeUInt16LE(positions.length, offset);
    for (const position of positions) offset = buffer.writeUInt16LE(position, offset);
  }
  return buffer;
}

/** Finds a gram in its bucket. */
export function findPostings(bytes: Uint8Array, gram: number): Postings {
  const bucket = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset < bucket.length; ) {
    const count = bucket.readUInt16LE(offset + 4);
    const start = offset + HEADER_BYTES;
    offset = start + count * POSITION_BYTES;
    if (bucket.readUInt32LE(start - HEADER_BYTES) !== gram) continue;
    if (count === 0) return "many";
    return Array.from({ length: count }, (_, index) => bucket.readUInt16LE(start + index * POSITION_BYTES));
  }
  return undefined;
}

/** Returns the positions that are in all lists, most links first left out; "many" if no gram lists its links. */
export function intersect(lists: Postings[]): Postings {
  if (lists.includes(undefined)) return undefined;
  const listed = lists.filter((list) => Array.isArray(list));
  if (listed.length === 0) return "many";
  const [first = [], ...others] = listed.sort((one, other) => one.length - other.length);
  const sets = others.map((list) => new Set(list));
  return first.filter((position) => sets.every((set) => set.has(position)));
}
