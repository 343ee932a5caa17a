import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Database } from "./database.ts";
import { isDuplicate } from "./engine.ts";
import type { Journal } from "./journal.ts";
import { recordForMember } from "./member-events.ts";

/** A person at an identity provider: the two together are unique and stay (OpenID Connect Core §5.7). */
export type IdentityKey = { issuer: string; subject: string };
/** An identity as its person sees it. */
export type LinkedIdentity = IdentityKey & { label: string | null; createdAt: number };

/** Who signs in from elsewhere. */
export type IdentityStore = {
  /** The person that an identity belongs to. */
  ownerOf(identity: IdentityKey): Promise<string | undefined>;
  ofUser(userId: string): Promise<LinkedIdentity[]>;
  /** Ties an identity to a person; false when it is somebody's already. */
  link(userId: string, identity: IdentityKey & { label: string | null }, by: By): Promise<boolean>;
  /** Unties it, unless it is the only way in; false then, and for one that is not the person's. */
  unlink(userId: string, identity: IdentityKey, by: By): Promise<boolean>;
};

/** The identities of a database. */
export function createIdentityStore({ knex, transaction }: Database, journal: Journal): IdentityStore {
  return {
    async ownerOf({ issuer, subject }) {
      const row = await knex("identities").where({ issuer, subject }).first("user_id");
      return row?.user_id;
    },

    ofUser: (userId) =>
      knex("identities")
        .where({ user_id: userId })
        .orderBy("created_at")
        .select({ issuer: "issuer", subject: "subject", label: "label", createdAt: "created_at" }),

    async link(userId, identity, by) {
      try {
        await transaction(async (trx) => {
          await insertIdentity(trx, userId, identity);
          const { issuer } = identity;
          await recordForMember(trx, journal, by, { userId, type: "member.identity_linked", issuer });
        });
        return true;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },

    unlink: (userId, { issuer, subject }, by) =>
      transaction(async (trx) => {
        const user = await trx("users").where({ id: userId }).forUpdate().first("password_hash");
        const all = await trx("identities").where({ user_id: userId }).pluck("subject");
        if (!user?.password_hash && all.length < 2) return false;
        if (!(await trx("identities").where({ user_id: userId, issuer, subject }).delete())) return false;
        await recordForMember(trx, journal, by, { userId, type: "member.identity_unlinked", issuer });
        return true;
      }),
  };
}

/** Ties an identity to a person; part of the caller's transaction. */
export async function insertIdentity(
  trx: Knex.Transaction,
  userId: string,
  { issuer, subject, label }: IdentityKey & { label: string | null },
): Promise<void> {
  await trx("identities").insert({ issuer, subject, user_id: userId, label, created_at: Date.now() });
}
