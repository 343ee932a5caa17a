import { sha256 } from "../crypto/hash.ts";
import type { Database } from "../database/index.ts";
import { readUpgrade, UPGRADE_MS } from "../database/migrations/upgrade.ts";
import { tokenTimeAt } from "../database/token-time.ts";

// A prefix, the time of issue, 256 random bits, and the checksum.
const TIMED_TOKEN = /^lg[ar]_([0-9a-z]{9})[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$/;
const KEY_LENGTH = 43;

/** Returns the current time as tokens contain it. */
export function tokenTime(): string {
  return tokenTimeAt(Date.now());
}

/** The keys that tokens are stored under, 43 characters each. */
export type TokenKeys = {
  /** Returns the key that a new token is stored under. */
  of(token: string): Promise<string>;
  /**
   * Calls `run` with the key of a token, and, if that finds nothing, with the one that it may have in a database that was
   * copied from another one. The other key can't be computed from a stored one.
   * @param run resolves to what it found; undefined or 0 is nothing
   */
  find<Found>(token: string, run: (key: string) => Promise<Found>): Promise<Found>;
};

/**
 * Creates the keys of a database. A timed key is the time in the token and the first 204 bits of its SHA-256 hash. Such
 * keys are appended to the index; random ones change, and write, a page each. Processes of version 0.2 find tokens by the
 * whole hash only, so in a database that was upgraded, tokens have timed keys from 24 hours after the migration. Tokens
 * without a time, and those from before, have the hash. Both times are stored, so all processes compute the same key, even
 * if their clocks differ.
 */
export function createTokenKeys(database: Pick<Database, "knex">): TokenKeys {
  const timedFrom = createTimedFrom(database);

  /** Returns the key of a token, and the other one that it may have. */
  async function keysOf(token: string): Promise<[key: string, other?: string]> {
    const hash = sha256(token);
    const time = TIMED_TOKEN.exec(token)?.[1];
    if (time === undefined) return [hash];
    const timed = (time + hash).slice(0, KEY_LENGTH);
    return Number.parseInt(time, 36) >= (await timedFrom()) ? [timed, hash] : [hash, timed];
  }

  return {
    of: async (token) => (await keysOf(token))[0],

    async find(token, run) {
      const [key, other] = await keysOf(token);
      const found = await run(key);
      return found || other === undefined ? found : run(other);
    },
  };
}

/** Returns a function that resolves to the time from which tokens have timed keys, and reads it once. */
function createTimedFrom(database: Pick<Database, "knex">): () => Promise<number> {
  let reading: Promise<number> | undefined;
  return () => {
    reading ??= readTimedFrom(database).catch((error) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

async function readTimedFrom(database: Pick<Database, "knex">): Promise<number> {
  const upgrade = await readUpgrade(database);
  if (!upgrade) throw new Error("the database isn't migrated");
  return upgrade.isFromPrevious ? upgrade.migratedAt + UPGRADE_MS : 0;
}
