import { randomBytes, randomFillSync } from "node:crypto";
import { crc32 } from "node:zlib";
import { encodeTime, incrementBase32, monotonicFactory, ulid } from "ulid";

const pool = new Uint8Array(4096);
let used = pool.length;

// Draws from a pool, because the package would ask the system for each byte.
function random(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256; // enough to pick one of 32 characters
}

const nextUlid = monotonicFactory(random);

export const OPERATOR_ID = "operator";

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
    | "lss"
    | "psk",
): string {
  return `${prefix}_${nextUlid()}`;
}

/** Returns what the public ids of a time or later sort after. */
export function idBound(prefix: "evt" | "lnk", at: number): string {
  return `${prefix}_${encodeTime(at)}`;
}

/** Returns a new id that sorts among those created at a time, in epoch milliseconds. */
export function newIdAt(prefix: "lnk", createdAt: number): string {
  return `${prefix}_${ulid(createdAt, random)}`;
}

export function newIdSeed(): string {
  return ulid(undefined, random);
}

/** Returns the id at an index in the sequence of a seed, always the same one. Ids sort by index. */
export function idFromSeed(seed: string, prefix: "lnk", index: number): string {
  let id = seed;
  for (let step = 0; step < index; step++) id = incrementBase32(id);
  return `${prefix}_${id}`;
}

/** Returns a new secret: a prefix and 32 random bytes in base64url, so it needs no further encoding. */
export function newSecret(prefix: string): string {
  return prefix + randomBytes(32).toString("base64url");
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
