import { randomBytes, randomFillSync } from "node:crypto";
import { incrementBase32, monotonicFactory, ulid } from "ulid";

const pool = new Uint8Array(4096);
let used = pool.length;

/** A number below 1 from a random byte: the package would ask the system for each one by itself. */
function random(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256; // it wants one of 32 characters
}

const nextUlid = monotonicFactory(random);

/** The actor of the administration command, as `By` names it. */
export const OPERATOR_ID = "operator";

/** A public id: prefix, underscore, ULID. Ids of one process sort in the order in which they were made. */
export function newId(prefix: "org" | "usr" | "lnk" | "sec" | "whk" | "evt" | "inv"): string {
  return `${prefix}_${nextUlid()}`;
}

/** Where ids can be counted from that are to be the same when they are asked for again. */
export function newSeed(): string {
  return ulid(undefined, random);
}

/** The id at a place of those that are counted from a seed; they sort by their places. */
export function idFrom(seed: string, prefix: "lnk", place: number): string {
  let id = seed;
  for (let step = 0; step < place; step++) id = incrementBase32(id);
  return `${prefix}_${id}`;
}

/** 32 random bytes behind a prefix; only `[A-Za-z0-9_-]`, so that it needs no encoding anywhere. */
export function newSecret(prefix: string): string {
  return prefix + randomBytes(32).toString("base64url");
}

/** A client id: `lgc_` and 16 random bytes. */
export function newClientId(): string {
  return `lgc_${randomBytes(16).toString("base64url")}`;
}
