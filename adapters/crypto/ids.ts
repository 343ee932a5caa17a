import { hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";

let last = "";
let lastAt = 0;

/** Returns a new public id: prefix, underscore, ULID. Ids from one process sort in the order of their creation. */
export function newId(
  prefix:
    | "org"
    | "usr"
    | "lnk"
    | "sec"
    | "whk"
    | "evt"
    | "inv"
    | "key"
    | "trs"
    | "ntc"
    | "eml"
    | "app"
    | "dom"
    | "lss"
    | "psk",
): string {
  const now = Date.now();
  // Also when the clock was set back.
  last = now > lastAt ? ulid(now) : increment(last);
  lastAt = Math.max(now, lastAt);
  return `${prefix}_${last}`;
}

/** Returns the lower bound of the ids that are created at a time or later. */
export function idBound(prefix: "evt" | "lnk", at: number): string {
  return `${prefix}_${encodeTime(at)}`;
}

/** Returns a new id that sorts among those created at a time, in epoch milliseconds. */
export function newIdAt(prefix: "lnk", createdAt: number): string {
  return `${prefix}_${ulid(createdAt)}`;
}

export function newIdSeed(): string {
  return ulid(Date.now());
}

/** Returns the id at an index in the sequence of a seed, always the same one. Ids sort by index. */
export function idFromSeed(seed: string, prefix: "lnk", index: number): string {
  let id = seed;
  for (let step = 0; step < index; step++) id = increment(id);
  return `${prefix}_${id}`;
}

// https://github.com/ulid/spec: ten characters of time in milliseconds, and 80 random bits, in Crockford's base 32.
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LENGTH = 10;

function ulid(at: number): string {
  return encodeTime(at) + Array.from(randomBytes(16), (byte) => ALPHABET[byte % 32]).join("");
}

function encodeTime(at: number): string {
  const digits = Array.from({ length: TIME_LENGTH }, (_, index) => Math.floor(at / 32 ** index) % 32);
  return digits
    .map((digit) => ALPHABET.charAt(digit))
    .reverse()
    .join("");
}

/** Increases the last character that isn't the highest one; those after it start over. */
function increment(id: string): string {
  const kept = id.slice(0, 1 + [...id].findLastIndex((character) => character !== "Z"));
  const next = ALPHABET.charAt(ALPHABET.indexOf(kept.slice(-1)) + 1);
  return (kept.slice(0, -1) + next).padEnd(id.length, "0");
}

/** Returns a new secret: a prefix and 32 random bytes in base64url, so it needs no further encoding. */
export function newSecret(prefix: string): string {
  return prefix + randomBytes(32).toString("base64url");
}

/** SHA-256 in base64url. Every hashed secret has 256 random bits, so it needs no salt (OWASP ASVS 5.0 V6.5.2). */
export function sha256(value: string | Uint8Array): string {
  return hash("sha256", value, "base64url");
}

export function newClientId(): string {
  return `lgc_${randomBytes(16).toString("base64url")}`;
}

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
// 62^6 > 2^32
const LENGTH = 6;

/** Appends a CRC-32 in base 62, by which scanners recognize credentials. It protects against nothing. */
export function withChecksum(text: string): string {
  return text + checksumOf(text);
}

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
