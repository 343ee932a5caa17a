import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import { endGrants } from "./grants.ts";
import { sha256 } from "./hash.ts";
import { newId, newSecret } from "./id.ts";
import type { Journal } from "./journal.ts";
import { recordForMember } from "./member-events.ts";
import { addMember, memberAdded, type Role } from "./organizations.ts";
import { endAllSessions } from "./sign-ins.ts";

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
    passwordHash: string | null,
    by: By,
    membership?: { organizationId: string; role: Role },
  ): Promise<{ id: string; username: string } | undefined>;
  find(id: string): Promise<Account | undefined>;
  /** Upper and lower case are one name. */
  findByUsername(username: string): Promise<Account | undefined>;
  /** Whether a hash is the person's still. A change that is under way is waited for. */
  hasHash(id: string, passwordHash: string): Promise<boolean>;
  /** Makes a link, good once, that sets a new password; `told` is the organization that is to know. Resolves to its token. */
  createResetToken(
    userId: string,
    lifetimeMs: number,
    told?: { organizationId: string; by: By },
  ): Promise<string>;
  /** The person behind a token that is still good. */
  findByResetToken(token: string): Promise<Account | undefined>;
  /**
   * Sets a new password and uses the token up: once, however many at a time. Ends every session and grant of the
   * person, since whoever knew the old password may hold one (OAuth 2.1 §4.3.3). False for a token that is no good.
   * `address`: where the person is.
   */
  resetPassword(token: string, passwordHash: string, address?: string): Promise<boolean>;
};

const RESET = "password_reset";
const columns = ["id", "username", "password_hash", "disabled_at"] as const;

/** The people of a database. */
export function createAccountStore({ knex, transaction }: Database, journal: Journal): AccountStore {
  const usable = (token: string) =>
    knex("one_time_links")
      .where({ id_hash: sha256(token), purpose: RESET, used_at: null })
      .where("expires_at", ">", Date.now());

  return {
    async create(username, passwordHash, by, membership) {
      const id = newId("usr");
      try {
        await transaction(async (trx) => {
          await insertUser(trx, { id, username, passwordHash });
          if (!membership) return;
          const { organizationId, role } = membership;
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

    createResetToken: (userId, lifetimeMs, told) =>
      transaction(async (trx) => {
        const token = newSecret("");
        const now = Date.now();
        await trx("one_time_links").insert({
          id_hash: sha256(token),
          purpose: RESET,
          user_id: userId,
          created_at: now,
          expires_at: now + lifetimeMs,
        });
        if (told) {
          const { organizationId, by } = told;
          const data = { user_id: userId };
          await journal.record(trx, by, {
            organizationId,
            type: "member.reset_link_created",
            subject: userId,
            data,
          });
        }
        return token;
      }),

    async findByResetToken(token) {
      const link = await usable(token).first("user_id");
      return link && toAccount(await knex("users").where({ id: link.user_id }).first(columns));
    },

    resetPassword: (token, passwordHash, address) =>
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
        const by = { actor: user_id, ...(address && { address }) };
        await recordForMember(trx, journal, by, { userId: user_id, type: "member.password_changed" });
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
