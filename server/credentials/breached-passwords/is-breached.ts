import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

/** With 532,733 passwords, 1 in 3.7 million other texts is mistaken for one of them. */
export const FILTER_BYTES = 2 * 1024 * 1024;
export const FILTER_HASHES = 22;
/** The README beside the file says where the passwords come from. */
export const FILTER_FILE = new URL("passwords.bloom", import.meta.url);

let filter: ReturnType<typeof createBloomFilter> | undefined;

/** Ignores case. The first call loads the list. */
export function isBreached(text: string): boolean {
  filter ??= createBloomFilter(readFileSync(FILTER_FILE), FILTER_HASHES);
  return filter.has(text.toLowerCase());
}

/** May also contain texts that were never added, at a known rate (B. H. Bloom, CACM 13(7), 1970). */
export function createBloomFilter(bytes: Uint8Array, hashes: number) {
  const size = bytes.length * 8;

  /** Derives the positions from two hashes (Kirsch and Mitzenmacher, ESA 2006). */
  function positionsOf(text: string): number[] {
    const digest = hash("sha256", text, "buffer");
    const first = digest.readUInt32LE(0);
    const step = digest.readUInt32LE(4) | 1; // odd, so that positions don't repeat
    return Array.from({ length: hashes }, (_, index) => ((first + index * (step >>> 0)) >>> 0) % size);
  }

  return {
    add(text: string): void {
      for (const position of positionsOf(text)) bytes[position >> 3] = byteAt(position) | maskOf(position);
    },
    has: (text: string): boolean =>
      positionsOf(text).every((position) => (byteAt(position) & maskOf(position)) !== 0),
  };

  function byteAt(position: number): number {
    return bytes[position >> 3] ?? 0;
  }
}

function maskOf(position: number): number {
  return 1 << (position & 7);
}
