import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { GrantRow, SessionRow } from "../database/tables/oauth.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockUser } from "../locks.ts";
import { revokeGrants } from "../oauth/grants.ts";

/** A browser session, or a first-party grant of a program. Times are epoch milliseconds. */
export type ActiveSession = {
  id: string;
  means: "session" | "token";
  /** `password`, `totp`, `recovery_code`, `passkey` or `sso`. Empty if that wasn't recorded. */
  methods: string[];
  createdAt: number;
  /** Null for a token. */
  lastSeenAt: number | null;
  address: string | null;
  userAgent: string | null;
};

// The client id of first-party grants.
const FIRST_PARTY = "dashboard";

export type SessionStore = ReturnType<typeof createSessionStore>;

export function createSessionStore({ knex, transaction }: Database, outbox: Outbox) {
  return {
    async listByUser(userId: string): Promise<ActiveSession[]> {
      const now = Date.now();
      const [sessionRows, grantRows] = await Promise.all([
        knex("sessions").where({ user_id: userId, destroyed_at: null }).where("expires_at", ">", now),
        knex("grants")
          .where({ ...firstParty(userId), revoked_at: null })
          .where("expires_at", ">", now),
      ]);
      return [...sessionRows.map(fromSession), ...grantRows.map(fromGrant)].sort(
        (a, b) => b.createdAt - a.createdAt,
      );
    },

    /** Ends a session of the actor. Returns false if there is none of that id. */
    end: (id: string, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        await lockUser(change.trx, actor.id);
        const ended = await endSessions(change.trx, { user_id: actor.id, uid: id });
        const revoked = await revokeGrants(change, { ...firstParty(actor.id), id });
        await recordEnded(change, ended + revoked);
        return ended + revoked > 0;
      }),

    /** Ends a browser session of a user, also if it is getting a new ID, and records nothing. */
    signOut: (userId: string, id: string): Promise<void> =>
      transaction(async (trx) => {
        await lockUser(trx, userId);
        await endSessions(trx, { user_id: userId, uid: id });
      }),

    /** Ends all sessions of the actor except one and, with `apps`, revokes the access of all apps. */
    endOthers: (keptId: string, actor: Actor, { apps } = { apps: false }): Promise<void> =>
      outbox.change(actor, async (change) => {
        await lockUser(change.trx, actor.id);
        const ended = await endAllSessions(change.trx, actor.id, keptId);
        const grants = apps ? { user_id: actor.id } : firstParty(actor.id);
        const revoked = await revokeGrants(change, grants, keptId);
        await recordEnded(change, ended + revoked);
      }),
  };
}

async function recordEnded(change: Change, sessions: number): Promise<void> {
  if (sessions === 0) return;
  await recordForMember(change, { userId: change.actor.id, type: "member.session_ended", sessions });
}

/** Ends all sessions but one, and the pending authorizations in which the user signed in. Part of the transaction. */
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

/** Ends sessions and program tokens with this second factor. A passkey's own sessions end by their credential. */
export async function endSessionsWithFactor(
  change: Change,
  method: "totp" | "passkey",
  keptId: string,
): Promise<void> {
  const { trx } = change;
  const user_id = change.actor.id;
  const uses = ({ payload }: { payload: string }) =>
    (JSON.parse(payload) as { methods?: string[] }).methods?.includes(method) ?? false;
  const sessions = await trx("sessions").where({ user_id }).whereNull("destroyed_at");
  const uids = sessions.flatMap((row) =>
    uses(row) && !isPasskey(row.credential) ? [row.uid as string] : [],
  );
  for (const uid of uids) await endSessions(trx, { user_id, uid }, keptId);
  const grants = await trx("grants").where(firstParty(user_id)).whereNull("revoked_at");
  const ids = grants.filter(uses).map(({ id }) => id);
  await revokeGrants(change, (grant) => grant.whereIn("id", ids), keptId);
}

export function isPasskey(credential: string | null | undefined): boolean {
  return credential?.startsWith("psk_") ?? false;
}

/** Ends sessions and leaves tombstones. The caller has locked the user, so no session is getting a new id. */
export async function endSessions(
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
