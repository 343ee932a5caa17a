import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { sha256 } from "./hash.ts";
import { newId, newSecret } from "./id.ts";
import { addMember, type Role } from "./organizations.ts";

/** A person who can sign in. */
export type Account = {
  id: string;
  username: string;
  /** PHC string; null when the person signs in elsewhere only. */
  passwordHash: string | null;
  disabled: boolean;
};

/** People, their passwords, and one-time links to set a new one. */
export type AccountStore = {
  /** Nothing when the name is taken. */
  create(
    username: string,
    passwordHash: string,
    membership?: { organizationId: string; role: Role },
  ): Promise<{ id: string; username: string } | undefined>;
  find(id: string): Promise<Account | undefined>;
  /** Upper and lower case are one name. */
  findByUsername(username: string): Promise<Account | undefined>;
  /** Replaces the hash of an unchanged password, for one made with newer parameters. */
  rehashPassword(id: string, passwordHash: string): Promise<void>;
  /** Makes a link, good once, that sets a new password. Resolves to its token. */
  createResetToken(userId: string, lifetimeMs: number): Promise<string>;
  /** The person behind a token that is still good. */
  findByResetToken(token: string): Promise<Account | undefined>;
  /**
   * Sets a new password and uses the token up: once, however many at a time. Ends every session and grant of the
   * person, since whoever knew the old password may hold one (OAuth 2.1 §4.3.3). False for a token that is no good.
   */
  resetPassword(token: string, passwordHash: string): Promise<boolean>;
};

const RESET = "password_reset";
const columns = ["id", "username", "password_hash", "disabled_at"] as const;

/** The people of a database. */
export function createAccountStore({ knex, transaction }: Database): AccountStore {
  const usable = (token: string) =>
    knex("one_time_links")
      .where({ id_hash: sha256(token), purpose: RESET, used_at: null })
      .where("expires_at", ">", Date.now());

  return {
    async create(username, passwordHash, membership) {
      const id = newId("usr");
      const user = {
        id,
        username,
        username_key: fold(username),
        password_hash: passwordHash,
        created_at: Date.now(),
      };
      try {
        await transaction(async (trx) => {
          await trx("users").insert(user);
          if (membership) await addMember(trx, id, membership.organizationId, membership.role);
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

    async rehashPassword(id, passwordHash) {
      await knex("users").where({ id }).update({ password_hash: passwordHash });
    },

    async createResetToken(userId, lifetimeMs) {
      const token = newSecret("");
      const now = Date.now();
      await knex("one_time_links").insert({
        id_hash: sha256(token),
        purpose: RESET,
        user_id: userId,
        created_at: now,
        expires_at: now + lifetimeMs,
      });
      return token;
    },

    async findByResetToken(token) {
      const link = await usable(token).first("user_id");
      return link && toAccount(await knex("users").where({ id: link.user_id }).first(columns));
    },

    resetPassword: (token, passwordHash) =>
      transaction(async (trx) => {
        const now = Date.now();
        if (!(await usable(token).transacting(trx).update({ used_at: now }))) return false;
        const { user_id } = await trx("one_time_links")
          .where({ id_hash: sha256(token) })
          .first("user_id");
        await trx("users").where({ id: user_id }).update({ password_hash: passwordHash });
        // Other links to the same end are used up with it.
        await trx("one_time_links")
          .where({ user_id, purpose: RESET, used_at: null })
          .update({ used_at: now });
        await trx("grants").where({ user_id }).whereNull("revoked_at").update({ revoked_at: now });
        await trx("sessions")
          .where({ user_id })
          .whereNull("destroyed_at")
          .update({ destroyed_at: now, uid: null, payload: "{}" });
        return true;
      }),
  };
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
