import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { endGrants } from "./grants.ts";
import type { Journal } from "./journal.ts";
import { recordForMember } from "./member-events.ts";

/** Where a person is signed in: a session of a browser, or the tokens of a program. Times are epoch milliseconds. */
export type SignIn = {
  id: string;
  means: "session" | "token";
  createdAt: number;
  /** Of a session alone. */
  lastSeenAt: number | null;
  address: string | null;
  userAgent: string | null;
};

/** Where people are signed in. */
export type SignInStore = {
  /** The living ones, newest first. */
  ofUser(userId: string): Promise<SignIn[]>;
  /** Ends one of the person's; false when there is none of that id. */
  end(id: string, by: By): Promise<boolean>;
  /** Ends all of the person's but one. */
  endOthers(keptId: string, by: By): Promise<void>;
  /**
   * Sets a new password. Every other sign-in ends with it, and whatever apps were allowed: whoever knew the old one may
   * hold them (OAuth 2.1 §4.3.3). Returns false, and changes nothing, unless `currentHash` is still the user's.
   */
  changePassword(
    hashes: { currentHash: string | null; newHash: string },
    keptId: string,
    by: By,
  ): Promise<boolean>;
};

const FIRST_PARTY = "dashboard";

/** The sign-ins of a database; `by` is the person whose they are. */
export function createSignInStore({ knex, transaction }: Database, journal: Journal): SignInStore {
  const sessions = (userId: string) =>
    knex("sessions")
      .where({ user_id: userId })
      .whereNull("destroyed_at")
      .where("expires_at", ">", Date.now());
  const tokens = (userId: string) =>
    knex("grants")
      .where({ user_id: userId, client_id: FIRST_PARTY })
      .whereNull("revoked_at")
      .where("expires_at", ">", Date.now());

  return {
    async ofUser(userId) {
      const [browsers, programs] = await Promise.all([sessions(userId), tokens(userId)]);
      return [...browsers.map(ofSession), ...programs.map(ofGrant)].sort((a, b) => b.createdAt - a.createdAt);
    },

    end: (id, by) =>
      transaction(async (trx) => {
        const ended = await endSessions(trx, { user_id: by.actor, uid: id });
        return ended + (await endGrants(trx, journal, by, { ...firstParty(by), id })) > 0;
      }),

    endOthers: (keptId, by) =>
      transaction(async (trx) => {
        await endAllSessions(trx, by.actor, keptId);
        await endGrants(trx, journal, by, firstParty(by), keptId);
      }),

    changePassword: ({ currentHash, newHash }, keptId, by) =>
      transaction(async (trx) => {
        const user_id = by.actor;
        const user = trx("users").where({ id: user_id, password_hash: currentHash });
        if (!(await user.update({ password_hash: newHash }))) return false;
        await recordForMember(trx, journal, by, { userId: user_id, type: "member.password_changed" });
        await endAllSessions(trx, user_id, keptId);
        await endGrants(trx, journal, by, { user_id }, keptId);
        await trx("one_time_links").where({ user_id, used_at: null }).update({ used_at: Date.now() });
        return true;
      }),
  };
}

/**
 * Ends every session of a person but one, and what would become one: a sign-in at an authorization that was not gone on
 * with. Part of the caller's transaction.
 */
export async function endAllSessions(trx: Knex.Transaction, user_id: string, exceptUid = ""): Promise<void> {
  await endSessions(trx, { user_id }, exceptUid);
  await trx("interactions")
    .where({ user_id })
    .whereNull("destroyed_at")
    .update({ destroyed_at: Date.now(), payload: "{}" });
}

/** Ends sessions but one, and leaves tombstones. Resolves to their number. */
async function endSessions(
  trx: Knex.Transaction,
  which: { user_id: string; uid?: string },
  exceptUid = "",
): Promise<number> {
  return trx("sessions")
    .where(which)
    .whereNot("uid", exceptUid)
    .whereNull("destroyed_at")
    .update({ destroyed_at: Date.now(), uid: null, payload: "{}", address: null, user_agent: null });
}

function firstParty({ actor }: By) {
  return { user_id: actor, client_id: FIRST_PARTY };
}

type SessionRow = {
  uid: string;
  payload: string;
  last_seen_at: number | null;
  address: string | null;
  user_agent: string | null;
};

function ofSession(row: SessionRow): SignIn {
  const { uid: id, last_seen_at: lastSeenAt, address, user_agent: userAgent } = row;
  // The row is a new one whenever the session gets a new id.
  const createdAt = (JSON.parse(row.payload) as { loginTs: number }).loginTs * 1000;
  return { id, means: "session", createdAt, lastSeenAt, address, userAgent };
}

function ofGrant({ id, created_at, payload }: { id: string; created_at: number; payload: string }): SignIn {
  const { address = null } = JSON.parse(payload) as { address?: string };
  return { id, means: "token", createdAt: created_at, lastSeenAt: null, address, userAgent: null };
}
