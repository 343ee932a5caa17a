import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId, OPERATOR_ID } from "../crypto/ids.ts";
import type { UserRow } from "../database/account-tables.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Outbox } from "../events/outbox.ts";
import { queueMail } from "../mail/queue.ts";
import { revokeGrants } from "../oauth/grants.ts";
import { addMember, lockOrganization, memberAdded, type Role } from "../organizations/store.ts";
import { forgetDevices } from "./known-devices.ts";
import { recordNotice } from "./notices.ts";
import {
  findResetLink,
  insertResetLink,
  isAuthorizedUnderLock,
  type ResetLink,
  redeemResetLink,
} from "./reset-links.ts";
import { endAllSessions } from "./sessions.ts";
import { forgetFailures, forgetFailuresOf } from "./sign-in-failures.ts";
import { normalizeUsername } from "./username-key.ts";

/** The account of a user. */
export type Account = {
  id: string;
  username: string;
  /** A PHC string, or null if the user signs in with SSO only. */
  passwordHash: string | null;
  disabled: boolean;
  /** A confirmed email address. */
  email: string | null;
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
  /** Like `find`, and returns whether the user has a second factor. */
  findWithFactor(id: string): Promise<(Account & { hasSecondFactor: boolean }) | undefined>;
  /** Finds an account by its username, ignoring case. */
  findByUsername(username: string): Promise<Account | undefined>;
  /** Returns whether the user is enabled and still has this hash. Waits for a concurrent change. */
  hasHash(id: string, passwordHash: string): Promise<boolean>;
  /** Returns whether the user is enabled. Waits for a concurrent change. */
  isEnabled(id: string): Promise<boolean>;
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
  /**
   * Queues an email with a reset link for the user of this name, if the user has a password and an email address. Does the
   * same for every name.
   */
  requestReset(username: string): Promise<void>;
  /** Finds the user of a token if it can be used now. */
  findByResetToken(token: string): Promise<Account | undefined>;
  /**
   * Redeems a token and sets a new password. Concurrent calls succeed once. Ends all sessions, forgets all devices and revokes
   * all grants of the user, which an attacker who knew the old password may hold (OAuth 2.1 §4.3.3). Returns false for an invalid token.
   * `address` is the user's IP address.
   */
  resetPassword(token: string, passwordHash: string, address?: string): Promise<boolean>;
};

const COLUMNS = ["id", "username", "password_hash", "disabled_at", "email"] as const;

/** Creates the account store of a database. */
export function createAccountStore({ knex, prepare, transaction }: Database, outbox: Outbox): AccountStore {
  const selectUser = prepare<Pick<UserRow, (typeof COLUMNS)[number]>[], "id">((q, { id }) =>
    q("users").where({ id }).select(COLUMNS),
  );

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

    async find(id) {
      const [row] = await selectUser({ id });
      return row && toAccount(row);
    },

    async findWithFactor(id) {
      const passkeys = knex("passkeys").where("user_id", knex.ref("users.id")).select(knex.raw("1")).limit(1);
      const totp = knex("totp_secrets")
        .where("user_id", knex.ref("users.id"))
        .whereNotNull("confirmed_at")
        .select(knex.raw("1"))
        .limit(1);
      const row = await knex("users")
        .where({ id })
        .first(...COLUMNS, { passkey: passkeys, totp });
      return row && { ...toAccount(row), hasSecondFactor: Boolean(row.passkey ?? row.totp) };
    },

    findByUsername: (username) => findAccount(knex, { username_key: normalizeUsername(username) }),

    hasHash: (id, passwordHash) =>
      transaction(async (trx) => {
        const user = await enabledUser(trx, id);
        return user?.password_hash === passwordHash;
      }),

    isEnabled: (id) => transaction(async (trx) => (await enabledUser(trx, id)) !== undefined),

    createResetToken: (userId, lifetimeMs) =>
      transaction(async (trx) => {
        const link = { userId, createdBy: OPERATOR_ID, organizationId: null };
        await recordNotice(trx, { userId, kind: "reset_link_created", data: { by: OPERATOR_ID } });
        await recordForMember(
          trx,
          outbox,
          { id: OPERATOR_ID },
          { userId, type: "member.reset_link_created" },
        );
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
        const data = { by: actor.id, address: actor.address };
        await recordNotice(trx, { userId, kind: "reset_link_created", data });
        return { token };
      }),

    requestReset: (username) =>
      transaction((trx) => {
        const data = { usernameKey: normalizeUsername(username) };
        return queueMail(trx, { kind: "password_reset", recipient: null, userId: null, data });
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
        // Users create the links that are mailed to them.
        const data = { ...(link.createdBy !== user_id && { by: link.createdBy }), address };
        await recordNotice(trx, { userId: user_id, kind: "reset_link_used", data });
        await revokeGrants(trx, outbox, actor, { user_id });
        await endAllSessions(trx, user_id);
        await forgetDevices(trx, user_id);
        await forgetFailuresOf(trx, user_id);
        return true;
      }),
  };
}

/** Finds a user who is not disabled, under a lock that lasts until the caller's transaction ends. */
function enabledUser(trx: Knex.Transaction, id: string) {
  return trx("users").where({ id }).whereNull("disabled_at").forShare().first("password_hash");
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
    username_key: normalizeUsername(username),
    password_hash: passwordHash,
    created_at: Date.now(),
  });
  // Others may have tried to sign in with the name before it was taken.
  await forgetFailures(trx, username);
}

function toAccount(row: Pick<UserRow, (typeof COLUMNS)[number]>): Account {
  return {
    id: row.id,
    username: row.username,
    passwordHash: row.password_hash,
    disabled: row.disabled_at !== null,
    email: row.email,
  };
}
