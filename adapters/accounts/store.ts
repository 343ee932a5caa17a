import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { endGrants } from "./grants.ts";
import { newId, OPERATOR_ID } from "./id.ts";
import type { Journal } from "./journal.ts";
import { recordForMember } from "./member-events.ts";
import { addMember, lockOrganization, memberAdded, type Role } from "./organizations.ts";
import { authorize, findResetLink, insertResetLink, takeResetLink } from "./reset-links.ts";
import { endAllSessions } from "./sign-ins.ts";

/** A person who can sign in. */
export type Account = {
  id: string;
  username: string;
  /** PHC string; null when the person signs in elsewhere only. */
  passwordHash: string | null;
  disabled: boolean;
};

/** Why an owner gets no reset link: an organization of the user is not the owner's, or the user has no password. */
export type ResetRefusal = "not_owner" | "no_password";

/** People, their passwords, and one-time links to set a new one. */
export type AccountStore = {
  /** Nothing when the name is taken. */
  create(
    username: string,
    passwordHash: string | null,
    by: By,
    membership?: { organizationId: string; role: Role },
  ): Promise<{ id: string; username: string } | undefined>;
  find(id: string): Promise<Account | undefined>;
  /** Upper and lower case are one name. */
  findByUsername(username: string): Promise<Account | undefined>;
  /** Whether a hash is the person's still. A change that is under way is waited for. */
  hasHash(id: string, passwordHash: string): Promise<boolean>;
  /** Creates a one-time link that sets a new password, for the operator. Resolves to its token. */
  createResetToken(userId: string, lifetimeMs: number): Promise<string>;
  /**
   * Creates such a link for an owner of an organization of the user, and records it there. The owner has to own every
   * organization of the user, now and when the link is used; it is revoked when one of their memberships changes.
   */
  createResetTokenAsOwner(
    userId: string,
    lifetimeMs: number,
    owner: { organizationId: string; by: By },
  ): Promise<{ token: string } | { refused: ResetRefusal }>;
  /** Finds the user of a token that can be used now. */
  findByResetToken(token: string): Promise<Account | undefined>;
  /**
   * Sets a new password and uses the token up: once, however many at a time. Ends every session and grant of the
   * person, since whoever knew the old password may hold one (OAuth 2.1 §4.3.3). False for a token that is no good.
   * `address`: where the person is.
   */
  resetPassword(token: string, passwordHash: string, address?: string): Promise<boolean>;
};

const columns = ["id", "username", "password_hash", "disabled_at"] as const;

/** The people of a database. */
export function createAccountStore({ knex, transaction }: Database, journal: Journal): AccountStore {
  return {
    async create(username, passwordHash, by, membership) {
      const id = newId("usr");
      try {
        await transaction(async (trx) => {
          await insertUser(trx, { id, username, passwordHash });
          if (!membership) return;
          const { organizationId, role } = membership;
          await lockOrganization(trx, organizationId);
          await addMember(trx, id, organizationId, role);
          await journal.record(trx, by, memberAdded(organizationId, id, role));
        });
      } catch (error) {
        if (isDuplicate(error)) return undefined;
        throw error;
      }
      return { id, username };
    },

    find: async (id) => toAccount(await knex("users").where({ id }).first(columns)),

    findByUsername: async (username) =>
      toAccount(
        await knex("users")
          .where({ username_key: fold(username) })
          .first(columns),
      ),

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

    createResetTokenAsOwner: (userId, lifetimeMs, { organizationId, by }) =>
      transaction(async (trx) => {
        const link = { userId, createdBy: by.actor, organizationId };
        if (!(await authorize(trx, link))) return { refused: "not_owner" };
        const { password_hash } = await trx("users").where({ id: userId }).first("password_hash");
        if (password_hash === null) return { refused: "no_password" };
        const token = await insertResetLink(trx, link, lifetimeMs);
        await journal.record(trx, by, {
          organizationId,
          type: "member.reset_link_created",
          subject: userId,
          data: { user_id: userId },
        });
        return { token };
      }),

    async findByResetToken(token) {
      const link = await findResetLink(knex, token);
      return link && toAccount(await knex("users").where({ id: link.userId }).first(columns));
    },

    resetPassword: (token, passwordHash, address) =>
      transaction(async (trx) => {
        const link = await takeResetLink(trx, token);
        if (!link) return false;
        const user_id = link.userId;
        await trx("users").where({ id: user_id }).update({ password_hash: passwordHash });
        const by = { actor: user_id, ...(address && { address }) };
        await recordForMember(trx, journal, by, {
          userId: user_id,
          type: "member.password_changed",
          reset_link_created_by: link.createdBy,
        });
        await endGrants(trx, journal, by, { user_id });
        await endAllSessions(trx, user_id);
        return true;
      }),
  };
}

/** Makes a person; part of the caller's transaction. */
export async function insertUser(
  trx: Knex.Transaction,
  { id, username, passwordHash }: Pick<Account, "id" | "username" | "passwordHash">,
): Promise<void> {
  await trx("users").insert({
    id,
    username,
    username_key: fold(username),
    password_hash: passwordHash,
    created_at: Date.now(),
  });
}

/** The form in which a user name is unique. */
function fold(username: string): string {
  return username.normalize("NFKC").toLowerCase();
}

type UserRow = {
  id: string;
  username: string;
  password_hash: string | null;
  disabled_at: number | null;
};

function toAccount(row: UserRow | undefined): Account | undefined {
  if (!row) return undefined;
  return {
    id: row.id,
    username: row.username,
    passwordHash: row.password_hash,
    disabled: row.disabled_at !== null,
  };
}
