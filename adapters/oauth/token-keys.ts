import { sha256 } from "../crypto/hash.ts";

// Milliseconds in base 36 have nine digits until the year 5188.
const TIME_LENGTH = 9;
// A prefix, the time of issue, 256 random bits, and the checksum.
const TIMED_TOKEN = /^lg[ar]_([0-9a-z]{9})[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/;
const KEY_LENGTH = 43;

/** Returns the current time as tokens contain it after their prefix: milliseconds in base 36 (0-9, a-z). */
export function tokenTime(): string {
  return Date.now().toString(36).padStart(TIME_LENGTH, "0");
}

/** The time in a token and 204 bits of its hash: appended to the index, where random keys would write a page each. */
export function tokenKey(token: string): string {
  const time = TIMED_TOKEN.exec(token)?.[1] ?? "";
  return (time + sha256(token)).slice(0, KEY_LENGTH);
}

/** Serializes what oidc-provider stores, without `jti`: the token, or the id of the session or grant. */
export function toStored(payload: { jti?: string }): string {
  const { jti: _, ...rest } = payload;
  return JSON.stringify(rest);
}
