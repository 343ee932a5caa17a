import { hash } from "node:crypto";

/** A set that may also contain texts that were never added, at a known rate (B. H. Bloom, CACM 13(7), 1970). */
export type BloomFilter = {
  add(text: string): void;
  has(text: string): boolean;
};

/** Creates a filter over a bit array. @param hashes the number of bits that each text sets */
export function createBloomFilter(bytes: Uint8Array, hashes: number): BloomFilter {
  const size = bytes.length * 8;

  /** Returns the positions of a text's bits, derived from two hashes (Kirsch and Mitzenmacher, ESA 2006). */
  function positionsOf(text: string): number[] {
    const digest = hash("sha256", text, "buffer");
    const first = digest.readUInt32LE(0);
    const step = digest.readUInt32LE(4) | 1; // odd, so that positions don't repeat
    return Array.from({ length: hashes }, (_, index) => ((first + index * (step >>> 0)) >>> 0) % size);
  }

  return {
    add(text) {
      for (const position of positionsOf(text)) bytes[position >> 3] = byteAt(position) | maskOf(position);
    },
    has: (text) => positionsOf(text).every((position) => byteAt(position) & maskOf(position)),
  };

  function byteAt(position: number): number {
    return bytes[position >> 3] ?? 0;
  }
}

function maskOf(position: number): number {
  return 1 << (position & 7);
}
