import { randomBytes, randomFillSync } from "node:crypto";
import { incrementBase32, monotonicFactory, ulid } from "ulid";

const pool = new Uint8Array(4096);
let used = pool.length;

/** Returns a random number below 1. Draws from a pool, because the package would ask the system for each byte. */
function random(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256; // enough to pick one of 32 characters
}

const nextUlid = monotonicFactory(random);

/** The actor id of the administration command. */
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

/** Returns a seed for `idFromSeed`. */
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

/** Returns a new client id: `lgc_` and 16 random bytes. */
export function newClientId(): string {
  return `lgc_${randomBytes(16).toString("base64url")}`;
}
