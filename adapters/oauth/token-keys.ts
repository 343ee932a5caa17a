import { sha256 } from "../crypto/hash.ts";
import type { Engine } from "../database/engine.ts";

// Milliseconds in base 36 have nine digits until the year 5188.
const TIME_LENGTH = 9;
// A prefix, the time of issue, 256 random bits, and the checksum.
const TIMED_TOKEN = /^lg[ar]_([0-9a-z]{9})[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/;
const KEY_LENGTH = 43;

/** Returns the current time as tokens contain it after their prefix: milliseconds, as nine digits of base 36 (0-9, a-z). */
export function tokenTime(): string {
  return Date.now().toString(36).padStart(TIME_LENGTH, "0");
}

/**
 * Returns the key that a token is stored under, 43 characters: its SHA-256 hash. On SQLite, the key of a token with a time
 * is that time and the first 204 bits of the hash. Such keys are appended to the index; random ones change, and write, a
 * page each. The other databases may serve processes of an earlier version, which find tokens by the whole hash only.
 */
export function tokenKey(engine: Engine, token: string): string {
  const time = engine === "sqlite" ? timeOf(token) : undefined;
  return time ? timedKey(time, token) : sha256(token);
}

/**
 * Calls `run` with the key of a token, and, if that finds nothing, with the key that it has on the other engines: a
 * database that was copied from another engine contains both. The other key can't be computed from a stored one.
 * @param run resolves to what it found; undefined or 0 is nothing
 */
export async function underTokenKeys<Found>(
  engine: Engine,
  token: string,
  run: (key: string) => Promise<Found>,
): Promise<Found> {
  const found = await run(tokenKey(engine, token));
  const time = found ? undefined : timeOf(token);
  if (!time) return found;
  return run(engine === "sqlite" ? sha256(token) : timedKey(time, token));
}

function timeOf(token: string): string | undefined {
  return TIMED_TOKEN.exec(token)?.[1];
}

function timedKey(time: string, token: string): string {
  return (time + sha256(token)).slice(0, KEY_LENGTH);
}
