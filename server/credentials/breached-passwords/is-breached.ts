import { readFileSync } from "node:fs";
import { type BloomFilter, createBloomFilter } from "./bloom-filter.ts";

/** The size of the filter. With its 532,733 passwords, 1 in 1,900 other texts is mistaken for one of them. */
export const FILTER_BYTES = 1024 * 1024;
/** The number of bits per password. */
export const FILTER_HASHES = 10;
/** The filter's file; its README says where the passwords come from. */
export const FILTER_FILE = new URL("passwords.bloom", import.meta.url);

let filter: BloomFilter | undefined;

/** Returns whether a text is in the list of breached passwords, ignoring case. The first call loads the list. */
export function isBreached(text: string): boolean {
  filter ??= createBloomFilter(readFileSync(FILTER_FILE), FILTER_HASHES);
  return filter.has(text.toLowerCase());
}
