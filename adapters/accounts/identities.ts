import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { sha256 } from "../crypto/ids.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import { recordForMember } from "../events/member-events.ts";
import type { Change, Outbox } from "../events/outbox.ts";
import { lockUser } from "../locks.ts";
import { recordNotice } from "./notices.ts";
import { endSessions } from "./sessions.ts";

/** A user at an identity provider. Together, both values are unique and never change (OpenID Connect Core §5.7). */
export type IdentityKey = { issuer: string; subject: string };
export type NewIdentity = IdentityKey & { label: string | null };
/** An identity linked to an account. `createdAt` is epoch milliseconds. */
export type LinkedIdentity = NewIdentity & { createdAt: number };

export function createIdentityStore({ knex }: Database, outbox: Outbox) {
  return {
    async findUserId({ issuer, subject }: IdentityKey): Promise<string | undefined> {
      const row = await knex("identities").where({ issuer, subject }).first("user_id");
      return row?.user_id;
    },

    listByUser: (userId: string): Promise<LinkedIdentity[]> =>
      knex("identities")
        .where({ user_id: userId })
        .orderBy("created_at")
        .select({ issuer: "issuer", subject: "subject", label: "label", createdAt: "created_at" }),

    /** Links an identity to a user. Returns false if it is already linked. */
    link: (userId: string, identity: NewIdentity, actor: Actor): Promise<boolean> =>
      outbox
        .change(actor, async (change) => {
          await insertIdentity(change.trx, userId, identity);
          await recordIdentity(change, "identity_linked", userId, identity);
          return true;
        })
        .catch(ifDuplicate(false)),

    /** Unlinks an identity and ends its sessions. Returns false if it is the user's only way to sign in. */
    unlink: (userId: string, { issuer, subject }: IdentityKey, actor: Actor): Promise<boolean> =>
      outbox.change(actor, async (change) => {
        const { trx } = change;
        const user = await lockUser(trx, userId);
        const subjects = await trx("identities").where({ user_id: userId }).pluck("subject");
        const passkey = await trx("passkeys").where({ user_id: userId }).first("id");
        if (!user?.password_hash && !passkey && subjects.length < 2) return false;
        if (!(await trx("identities").where({ user_id: userId, issuer, subject }).delete())) return false;
        await endSessions(trx, { user_id: userId, credential: credentialOf({ issuer, subject }) });
        await recordIdentity(change, "identity_unlinked", userId, { issuer });
        return true;
      }),
  };
}

async function recordIdentity(
  change: Change,
  kind: "identity_linked" | "identity_unlinked",
  userId: string,
  { issuer }: Pick<IdentityKey, "issuer">,
): Promise<void> {
  await recordForMember(change, { userId, type: `member.${kind}`, issuer });
  const data = { address: change.actor.address, name: issuer };
  await recordNotice(change.trx, { userId, kind, data });
}

/** Returns how a session refers to the identity that started it. */
export function credentialOf({ issuer, subject }: IdentityKey): string {
  return sha256(JSON.stringify([issuer, subject]));
}

export async function insertIdentity(
  trx: Knex.Transaction,
  userId: string,
  { issuer, subject, label }: NewIdentity,
): Promise<void> {
  await trx("identities").insert({ issuer, subject, user_id: userId, label, created_at: Date.now() });
}
