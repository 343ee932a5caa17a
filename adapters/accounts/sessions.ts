import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { GrantRow, SessionRow } from "../database/oauth-tables.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { lockUser } from "../organizations/reset-revocation.ts";
import { forgetDevices } from "./known-devices.ts";
import { recordNotice } from "./notices.ts";
import { forgetFailuresOf } from "./sign-in-failures.ts";

/** An active session of a user: a browser session, or a first-party grant of a program. Times are epoch milliseconds. */
export type ActiveSession = {
  id: string;
  means: "session" | "token";
  /** How the user signed in: `password`, `totp`, `recovery_code`, `passkey` or `sso`. Empty if that wasn't recorded. */
  methods: string[];
  createdAt: number;
  /** Null for a token. */
  lastSeenAt: number | null;
  address: string | null;
  userAgent: string | null;
};

/** Lists and ends the sessions of users. */
export type SessionStore = {
  /** Lists active sessions, newest first. */
  listByUser(userId: string): Promise<ActiveSession[]>;
  /** Ends a session of the actor. Returns false if there is none of that id. */
  end(id: string, actor: Actor): Promise<boolean>;
  /** Ends a browser session of a user, also if it is getting a new ID, and records nothing. */
  signOut(userId: string, id: string): Promise<void>;
  /** Ends all sessions of the actor except one and, with `apps`, revokes the access of all apps. */
  endOthers(keptId: string, actor: Actor, options?: { apps: boolean }): Promise<void>;
  /**
   * Sets a new password, ends all other sessions, forgets all devices and revokes all grants, which an attacker who knew the old password may
   * hold (OAuth 2.1 §4.3.3). Returns false and changes nothing if `currentHash` is no longer the user's.
   */
  changePassword(
    hashes: { currentHash: string | null; newHash: string },
    keptId: string,
    actor: Actor,
  ): Promise<boolean>;
};

/** The client id of first-party grants. */
export const FIRST_PARTY = "dashboard";

/** Creates the session store of a database. */
export function createSessionStore({ knex, transaction }: Database, outbox: Outbox): SessionStore {
  const sessions = (userId: string) =>
    knex("sessions")
      .where({ user_id: userId })
      .whereNull("destroyed_at")
      .where("expires_at", ">", Date.now());
  const grants = (userId: string) =>
    knex("grants")
      .where({ user_id: userId, client_id: FIRST_PARTY })
      .whereNull("revoked_at")
      .where("expires_at", ">", Date.now());

  return {
    async listByUser(userId) {
      const [sessionRows, grantRows] = await Promise.all([sessions(userId), grants(userId)]);
      return [...sessionRows.map(fromSession), ...grantRows.map(fromGrant)].sort(
        (a, b) => b.createdAt - a.createdAt,
      );
    },

    end: (id, actor) =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const ended = await endSessions(trx, { user_id: actor.id, uid: id });
        const revoked = await revokeGrants(trx, outbox, actor, { ...firstParty(actor.id), id });
        await recordEnded(trx, outbox, actor, ended + revoked);
        return ended + revoked > 0;
      }),

    signOut: (userId, id) =>
      transaction(async (trx) => {
        await lockUser(trx, userId);
        await endSessions(trx, { user_id: userId, uid: id });
      }),

    endOthers: (keptId, actor, { apps } = { apps: false }) =>
      transaction(async (trx) => {
        await lockUser(trx, actor.id);
        const ended = await endAllSessions(trx, actor.id, keptId);
        const grants = apps ? { user_id: actor.id } : firstParty(actor.id);
        const revoked = await revokeGrants(trx, outbox, actor, grants, keptId);
        await recordEnded(trx, outbox, actor, ended + revoked);
      }),

    changePassword: ({ currentHash, newHash }, keptId, actor) =>
      transaction(async (trx) => {
        const user_id = actor.id;
        const user = trx("users").where({ id: user_id, password_hash: currentHash });
        if (!(await user.update({ password_hash: newHash }))) return false;
        await recordForMember(trx, outbox, actor, { userId: user_id, type: "member.password_changed" });
        const { address } = actor;
        await recordNotice(trx, { userId: user_id, kind: "password_changed", data: { address } });
        await endAllSessions(trx, user_id, keptId);
        await revokeGrants(trx, outbox, actor, { user_id }, keptId);
        await forgetDevices(trx, user_id);
        await forgetFailuresOf(trx, user_id);
        await trx("one_time_links").where({ user_id, used_at: null }).update({ used_at: Date.now() });
        return true;
      }),
  };
}

/** Records that a user has ended sessions of theirs. Part of the caller's transaction. */
async function recordEnded(trx: Knex.Transaction, outbox: Outbox, actor: Actor, sessions: number) {
  if (sessions === 0) return;
  await recordForMember(trx, outbox, actor, { userId: actor.id, type: "member.session_ended", sessions });
}

/**
 * Ends every session of a user except one, and every pending authorization in which the user has signed in. Returns the
 * number of sessions. Part of the caller's transaction.
 */
export async function endAllSessions(
  trx: Knex.Transaction,
  user_id: string,
  exceptUid = "",
): Promise<number> {
  const ended = await endSessions(trx, { user_id }, exceptUid);
  await trx("interactions")
    .where({ user_id })
    .whereNull("destroyed_at")
    .update({ destroyed_at: Date.now(), payload: "{}" });
  return ended;
}

/** Ends the sessions that a passkey or an SSO identity started. Part of the caller's transaction. */
export async function endSessionsOfCredential(
  trx: Knex.Transaction,
  user_id: string,
  credential: string,
): Promise<void> {
  await endSessions(trx, { user_id, credential });
}

/**
 * Ends the other sessions, and revokes the tokens of programs, in which an authenticator app or a passkey was the second
 * factor. Those that began with a passkey are ended by its credential. Part of the caller's transaction.
 */
export async function endSessionsWithFactor(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  method: "totp" | "passkey",
  keptId: string,
): Promise<void> {
  const user_id = actor.id;
  const uses = ({ payload }: { payload: string }) =>
    (JSON.parse(payload) as { methods?: string[] }).methods?.includes(method) ?? false;
  const sessions = await trx("sessions").where({ user_id }).whereNull("destroyed_at");
  const uids = sessions.flatMap((row) =>
    uses(row) && !isPasskey(row.credential) ? [row.uid as string] : [],
  );
  for (const uid of uids) await endSessions(trx, { user_id, uid }, keptId);
  const grants = await trx("grants").where(firstParty(user_id)).whereNull("revoked_at");
  const ids = grants.filter(uses).map(({ id }) => id);
  await revokeGrants(trx, outbox, actor, (grant) => grant.whereIn("id", ids), keptId);
}

/** Returns whether the credential that a session depends on is a passkey. */
export function isPasskey(credential: string | null | undefined): boolean {
  return credential?.startsWith("psk_") ?? false;
}

/**
 * Ends the matching sessions except one and leaves tombstones. Returns their number. The caller has locked the user, so
 * that no session is getting a new id.
 */
async function endSessions(
  trx: Knex.Transaction,
  filter: { user_id: string; uid?: string; credential?: string },
  exceptUid = "",
): Promise<number> {
  return trx("sessions")
    .where(filter)
    .whereNot("uid", exceptUid)
    .whereNull("destroyed_at")
    .update({ destroyed_at: Date.now(), uid: null, payload: "{}", address: null, user_agent: null });
}

/** Returns the filter of a user's first-party grants. */
export function firstParty(userId: string) {
  return { user_id: userId, client_id: FIRST_PARTY };
}

function fromSession(row: SessionRow): ActiveSession {
  const { last_seen_at: lastSeenAt, address, user_agent: userAgent } = row;
  const id = row.uid as string; // null only once the session has ended
  // Not the row's `created_at`: a session gets a new row whenever its id changes.
  const { loginTs, methods = [] } = JSON.parse(row.payload) as { loginTs: number; methods?: string[] };
  const createdAt = loginTs * 1000;
  return { id, means: "session", methods, createdAt, lastSeenAt, address, userAgent };
}

function fromGrant({ id, created_at, payload }: GrantRow): ActiveSession {
  const { address = null, methods = [] } = JSON.parse(payload) as { address?: string; methods?: string[] };
  return { id, means: "token", methods, createdAt: created_at, lastSeenAt: null, address, userAgent: null };
}
