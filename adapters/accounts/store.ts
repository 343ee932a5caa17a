import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId, OPERATOR_ID } from "../crypto/ids.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { UserRow } from "../database/tables.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { addMember, lockOrganization, memberAdded, type Role } from "../organizations/store.ts";
import {
  findResetLink,
  insertResetLink,
  isAuthorizedUnderLock,
  type ResetLink,
  redeemResetLink,
} from "./reset-links.ts";
import { endAllSessions } from "./sessions.ts";

/** The account of a user. */
export type Account = {
  id: string;
  username: string;
  /** A PHC string, or null if the user signs in with SSO only. */
  passwordHash: string | null;
  disabled: boolean;
};

/** Why a reset link was not created: the actor doesn't own every organization of the user, or there is no password. */
export type ResetRefusal = "not_owner" | "no_password";

/** Stores user accounts, their passwords and password-reset links. */
export type AccountStore = {
  /** Creates an account. Resolves to undefined if the username is taken. */
  create(
    username: string,
    passwordHash: string | null,
    actor: Actor,
    membership?: { organizationId: string; role: Role },
  ): Promise<{ id: string; username: string } | undefined>;
  find(id: string): Promise<Account | undefined>;
  /** Finds an account by its username, ignoring case. */
  findByUsername(username: string): Promise<Account | undefined>;
  /** Returns whether a hash is still the user's. Waits for a concurrent change. */
  hasHash(id: string, passwordHash: string): Promise<boolean>;
  /** Creates a password-reset link as the operator. Resolves to its token. */
  createResetToken(userId: string, lifetimeMs: number): Promise<string>;
  /**
   * Creates a password-reset link as an owner of one of the user's organizations, and records the event there. The owner
   * must own every organization of the user, now and when the link is used. A change of the user's memberships or of the
   * owner's role revokes the link.
   */
  createResetTokenAsOwner(
    userId: string,
    lifetimeMs: number,
    owner: { organizationId: string; actor: Actor },
  ): Promise<{ token: string } | { refused: ResetRefusal }>;
  /** Finds the user of a token if it can be used now. */
  findByResetToken(token: string): Promise<Account | undefined>;
  /**
   * Redeems a token and sets a new password. Concurrent calls succeed once. Ends all sessions and revokes all grants of the
   * user, which an attacker who knew the old password may hold (OAuth 2.1 §4.3.3). Returns false for an invalid token.
   * `address` is the user's IP address.
   */
  resetPassword(token: string, passwordHash: string, address?: string): Promise<boolean>;
};

const COLUMNS = ["id", "username", "password_hash", "disabled_at"] as const;

/** Creates the account store of a database. */
export function createAccountStore({ knex, transaction }: Database, outbox: Outbox): AccountStore {
  return {
    async create(username, passwordHash, actor, membership) {
      const id = newId("usr");
      try {
        await transaction(async (trx) => {
          await insertUser(trx, { id, username, passwordHash });
          if (!membership) return;
          const { organizationId, role } = membership;
          await lockOrganization(trx, organizationId);
          await addMember(trx, id, organizationId, role);
          await outbox.record(trx, actor, memberAdded(organizationId, id, role));
        });
      } catch (error) {
        if (isDuplicate(error)) return undefined;
        throw error;
      }
      return { id, username };
    },

    find: (id) => findAccount(knex, { id }),

    findByUsername: (username) => findAccount(knex, { username_key: normalize(username) }),

    hasHash: (id, passwordHash) =>
      transaction(async (trx) => {
        const user = await trx("users").where({ id }).forShare().first("password_hash");
        return user?.password_hash === passwordHash;
      }),

    createResetToken: (userId, lifetimeMs) =>
      transaction((trx) => {
        const link = { userId, createdBy: OPERATOR_ID, organizationId: null };
        return insertResetLink(trx, link, lifetimeMs);
      }),

    createResetTokenAsOwner: (userId, lifetimeMs, { organizationId, actor }) =>
      transaction(async (trx) => {
        const link = { userId, createdBy: actor.id, organizationId };
        const refused = await refusalOf(trx, link);
        if (refused) return { refused };
        const token = await insertResetLink(trx, link, lifetimeMs);
        await outbox.record(trx, actor, {
          organizationId,
          type: "member.reset_link_created",
          subject: userId,
          data: { user_id: userId },
        });
        return { token };
      }),

    async findByResetToken(token) {
      const link = await findResetLink(knex, token);
      return link && findAccount(knex, { id: link.userId });
    },

    resetPassword: (token, passwordHash, address) =>
      transaction(async (trx) => {
        const link = await redeemResetLink(trx, token);
        if (!link) return false;
        const user_id = link.userId;
        await trx("users").where({ id: user_id }).update({ password_hash: passwordHash });
        const actor = { id: user_id, ...(address && { address }) };
        await recordForMember(trx, outbox, actor, {
          userId: user_id,
          type: "member.password_changed",
          reset_link_created_by: link.createdBy,
        });
        await revokeGrants(trx, outbox, actor, { user_id });
        await endAllSessions(trx, user_id);
        return true;
      }),
  };
}

async function findAccount(knex: Knex, key: Partial<UserRow>): Promise<Account | undefined> {
  const row = await knex("users")
    .where(key)
    .first(...COLUMNS);
  return row && toAccount(row);
}

/** Returns why an owner may not create a reset link, under locks that last until the caller's transaction ends. */
async function refusalOf(trx: Knex.Transaction, link: ResetLink): Promise<ResetRefusal | undefined> {
  if (!(await isAuthorizedUnderLock(trx, link))) return "not_owner";
  const user = await trx("users").where({ id: link.userId }).first("password_hash");
  return user?.password_hash ? undefined : "no_password";
}

/** Inserts a user. Part of the caller's transaction. */
export async function insertUser(
  trx: Knex.Transaction,
  { id, username, passwordHash }: Pick<Account, "id" | "username" | "passwordHash">,
): Promise<void> {
  await trx("users").insert({
    id,
    username,
    username_key: normalize(username),
    password_hash: passwordHash,
    created_at: Date.now(),
  });
}

/** Returns the form of a username that is unique. */
function normalize(username: string): string {
  return username.normalize("NFKC").toLowerCase();
}

function toAccount(row: Pick<UserRow, (typeof COLUMNS)[number]>): Account {
  return {
    id: row.id,
    username: row.username,
    passwordHash: row.password_hash,
    disabled: row.disabled_at !== null,
  };
}
