import type { Knex } from "knex";
import { sha256 } from "../crypto/ids.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import { type NoticeKind, recordNotice } from "./notices.ts";

// NIST SP 800-63B-4 §3.2.2: at most 100 consecutive failed attempts.
const MAX_FAILURES = 100;
// Users mistype a few times. After these, the delay doubles with each failure, from two seconds to 15 minutes.
const FAILURES_WITHOUT_DELAY = 10;
const FIRST_DELAY_MS = 2000;
const MAX_DELAY_MS = 15 * 60_000;
// How long an unknown username is remembered. Reaching the maximum takes a day.
const UNKNOWN_MS = 365 * 24 * 3600 * 1000;
// How long wrong passwords of a link are remembered. They never block its visitors, who can't reset its password.
const LINK_MS = 24 * 3600 * 1000;
// Concurrent attempts count one after the other. Those that don't get their turn have to try again.
const TURNS = 5;
const NO_TURN_MS = 1000;

/** Whether an attempt may be made now, later, or only from a known device. */
export type Admission = { outcome: "allowed" | "blocked" } | { outcome: "delayed"; waitMs: number };

type Counted = {
  account_key: string;
  max: number;
  /** How long the count is kept after the last failure; null for good. */
  keptMs: number | null;
  /** The user to notify of the last failure. */
  owner?: { userId: string; kind: NoticeKind } | undefined;
};

export type SignInFailureStore = ReturnType<typeof createSignInFailureStore>;

/** Counts wrong passwords and codes, of users and of links. Unknown usernames are counted, too, so answers don't reveal which exist. */
export function createSignInFailureStore({ knex, transaction }: Database) {
  function insertFirst(counted: Counted): Promise<boolean> {
    const { account_key } = counted;
    const first = { account_key, failures: 1, next_attempt_at: 0, expires_at: expiryOf(counted) };
    return knex("sign_in_failures")
      .insert(first)
      .then(() => true, ifDuplicate(false));
  }

  async function countOne(counted: Counted, failures: number): Promise<boolean> {
    const { account_key, max, owner } = counted;
    const isLast = failures + 1 >= max;
    const next = {
      failures: failures + 1,
      next_attempt_at: Date.now() + delayAfter(failures + 1),
      expires_at: expiryOf(counted),
    };
    const update = (trx: Knex) => trx("sign_in_failures").where({ account_key, failures }).update(next);
    if (!isLast || !owner) return (await update(knex)) > 0;
    return transaction(async (trx) => {
      if (!(await update(trx))) return false;
      await recordNotice(trx, { ...owner, data: {} });
      return true;
    });
  }

  async function attempt(counted: Counted): Promise<Admission> {
    const { account_key, max } = counted;
    for (let turn = 0; turn < TURNS; turn++) {
      const row = await knex("sign_in_failures").where({ account_key }).first("failures", "next_attempt_at");
      if (!row) {
        if (await insertFirst(counted)) return { outcome: "allowed" };
        continue;
      }
      if (row.failures >= max) return { outcome: "blocked" };
      const waitMs = row.next_attempt_at - Date.now();
      if (waitMs > 0) return { outcome: "delayed", waitMs };
      if (await countOne(counted, row.failures)) return { outcome: "allowed" };
    }
    return { outcome: "delayed", waitMs: NO_TURN_MS };
  }

  return {
    /** Counts an attempt as failed before it is made, so concurrent attempts count. */
    attempt: (username: string, userId: string | undefined) =>
      attempt(countedFor(userId, passwordKey(username), "account_locked")),

    attemptFactor: (userId: string) => attempt(countedFor(userId, factorKey(userId), "second_factor_locked")),

    /** Counts the attempt of one network to enter the password of a link. It is never blocked, only delayed. */
    attemptLink: (linkId: string, network: string) =>
      attempt({ account_key: linkKey(linkId, network), max: Infinity, keptMs: LINK_MS }),

    /** Resets the count: the user has entered the right password on an unknown device. */
    reset: (username: string) => forgetFailures(knex, passwordKey(username)),

    /** Resets the count: the user has proved the second factor. */
    resetFactor: (userId: string) => forgetFailures(knex, factorKey(userId)),

    /** Resets the count: a visitor from this network entered the password of the link. */
    resetLink: (linkId: string, network: string) => forgetFailures(knex, linkKey(linkId, network)),
  };
}

function countedFor(userId: string | undefined, account_key: string, kind: NoticeKind): Counted {
  return {
    account_key,
    max: MAX_FAILURES,
    keptMs: userId ? null : UNKNOWN_MS,
    owner: userId ? { userId, kind } : undefined,
  };
}

function expiryOf({ keptMs }: Counted): number | null {
  return keptMs === null ? null : Date.now() + keptMs;
}

export async function forgetFailures(knex: Knex, ...keys: string[]): Promise<void> {
  await knex("sign_in_failures").whereIn("account_key", keys).delete();
}

/** Forgets the wrong passwords and codes of a user. Part of the caller's transaction. */
export async function forgetFailuresOf(trx: Knex.Transaction, userId: string): Promise<void> {
  const user = await trx("users").where({ id: userId }).first("username");
  await forgetFailures(trx, factorKey(userId), ...(user ? [passwordKey(user.username)] : []));
}

/** Returns the form in which usernames are unique. Expects one of a username's length. */
export function normalizeUsername(username: string): string {
  return username.normalize("NFKC").toLowerCase();
}

function delayAfter(failures: number): number {
  const delays = failures - FAILURES_WITHOUT_DELAY;
  return delays <= 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (delays - 1), MAX_DELAY_MS);
}

/** Returns what the wrong passwords of a username are counted by. */
export function passwordKey(username: string): string {
  return sha256(normalizeUsername(username));
}

/** Returns what the wrong codes of a user are counted by. No username has this key: none contains a line break. */
export function factorKey(userId: string): string {
  return sha256(`second factor\n${userId}`);
}

/** Returns what the wrong passwords of a link are counted by. */
function linkKey(linkId: string, network: string): string {
  return sha256(`link\n${linkId}\n${network}`);
}
