import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { newId } from "../crypto/ids.ts";
import { ifDuplicate, isDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { UserRow } from "../database/tables/accounts.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { acceptInvitation, findOpenInvitation } from "../organizations/invitations.ts";
import { addMember, insertOrganization, type Organization, type Role } from "../organizations/store.ts";
import { insertIdentity, type NewIdentity } from "./identities.ts";
import { createPasswordStore, findResetUser } from "./passwords.ts";
import { forgetFailures, normalizeUsername, passwordKey } from "./sign-in-failures.ts";

export type Account = ReturnType<typeof toAccount>;

export type AccountStore = ReturnType<typeof createAccountStore>;

export function createAccountStore(database: Database, outbox: Outbox) {
  const { knex, transaction } = database;

  async function findBy(key: { id: string } | { username_key: string }): Promise<Account | undefined> {
    const row = await knex("users").where(key).first();
    return row && toAccount(row);
  }

  return {
    ...createPasswordStore(database, outbox),
    find: (id: string) => findBy({ id }),
    findByUsername: (username: string) => findBy({ username_key: normalizeUsername(username) }),

    /** Creates an account. Resolves to undefined if the username is taken. */
    create: (
      username: string,
      passwordHash: string | null,
      actor: Actor,
      membership?: { organizationId: string; role: Role },
    ): Promise<{ id: string; username: string } | undefined> => {
      const id = newId("usr");
      const user = { id, username };
      return outbox
        .change(actor, async (change) => {
          await insertUser(change.trx, { ...user, passwordHash });
          if (membership) await addMember(change, { userId: id, ...membership });
          return user;
        })
        .catch(ifDuplicate(undefined));
    },

    /** Like `find`, and returns whether the user has a second factor. */
    async findWithFactor(id: string): Promise<(Account & { hasSecondFactor: boolean }) | undefined> {
      const account = await findBy({ id });
      return account && { ...account, hasSecondFactor: await hasFactor(knex, id) };
    },

    async findByResetToken(token: string): Promise<Account | undefined> {
      const userId = await findResetUser(knex, token);
      return userId === undefined ? undefined : findBy({ id: userId });
    },

    /** Returns whether the user is enabled and still has this hash. Waits for a concurrent change. */
    hasHash: (id: string, passwordHash: string) =>
      transaction(async (trx) => (await enabledUser(trx, id))?.password_hash === passwordHash),

    /** Returns whether the user is enabled. Waits for a concurrent change. */
    isEnabled: (id: string) => transaction(async (trx) => (await enabledUser(trx, id)) !== undefined),
  };
}

/** Finds a user who is not disabled, under a lock that lasts until the caller's transaction ends. */
function enabledUser(trx: Knex.Transaction, id: string) {
  return trx("users").where({ id }).whereNull("disabled_at").forShare().first("password_hash");
}

type Registration = {
  username: string;
  passwordHash: string | null;
  /** The name of the new organization. Ignored with an invitation. */
  organizationName: string;
  invitation?: string | undefined;
  identity?: NewIdentity;
  address: string;
};

type Registered = { user: { id: string; username: string }; organization: Organization };

/** Registers users, together with their first organization. */
export function createRegistrationStore(outbox: Outbox) {
  async function join(change: Change, token: string): Promise<Organization> {
    const accepted = await acceptInvitation(change, token);
    if (!accepted) throw new Uninvited();
    return { id: accepted.organizationId, name: accepted.organizationName, plan: accepted.plan };
  }

  return {
    /** Creates a user with an organization, or as the invited member of one: all or nothing. */
    async register(registration: Registration): Promise<Registered | "taken" | "uninvited"> {
      const { username, passwordHash, organizationName: name, invitation, identity, address } = registration;
      const id = newId("usr");
      try {
        return await outbox.change({ id, address }, async (change) => {
          const { trx } = change;
          // First: only an invitation lets a visitor learn which usernames are taken.
          if (invitation && !(await findOpenInvitation(trx, invitation))) throw new Uninvited();
          await insertUser(trx, { id, username, passwordHash });
          if (identity) await insertIdentity(trx, id, identity);
          const organization = invitation
            ? await join(change, invitation)
            : await insertOrganization(change, { name, plan: "free", ownerId: id });
          return { user: { id, username }, organization };
        });
      } catch (error) {
        if (error instanceof Uninvited) return "uninvited";
        if (isDuplicate(error)) return "taken";
        throw error;
      }
    },
  };
}

/** Thrown to roll back the transaction. */
class Uninvited extends Error {}

async function insertUser(
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
  await forgetFailures(trx, passwordKey(username));
}

function toAccount(row: UserRow) {
  return {
    id: row.id,
    username: row.username,
    /** A PHC string, or null if the user signs in with SSO only. */
    passwordHash: row.password_hash,
    disabled: row.disabled_at !== null,
    /** A confirmed email address. */
    email: row.email,
  };
}

export async function hasFactor(knex: Knex, user_id: string): Promise<boolean> {
  const totp = await knex("totp_secrets").where({ user_id }).whereNotNull("confirmed_at").first("user_id");
  return Boolean(totp ?? (await knex("passkeys").where({ user_id }).first("id")));
}
