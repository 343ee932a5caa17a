import { crc32 } from "node:zlib";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
// 62^6 > 2^32
const LENGTH = 6;

/**
 * Appends a checksum to a credential: the CRC-32 of what precedes it, as six digits of base 62 (0-9, A-Z, a-z). Scanners
 * tell credentials from other text with it, without a request. It protects against nothing else.
 */
export function withChecksum(text: string): string {
  return text + checksumOf(text);
}

/** Returns whether a text ends with its checksum. */
export function hasChecksum(text: string): boolean {
  return text.length > LENGTH && text.slice(-LENGTH) === checksumOf(text.slice(0, -LENGTH));
}

function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = "";
  for (let position = 0; position < LENGTH; position++) {
    digits = DIGITS[rest % DIGITS.length] + digits;
    rest = Math.floor(rest / DIGITS.length);
  }
  return digits;
}
