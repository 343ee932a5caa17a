import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { sha256 } from "../crypto/hash.ts";
import { newId, newSecret } from "../crypto/ids.ts";
import type { Outbox } from "../events/outbox.ts";
import { countMails } from "../mail/queue.ts";
import type { Role } from "./store.ts";

/** A single-use invitation to an organization. Times are epoch milliseconds. */
export type Invitation = {
  id: string;
  role: Role;
  createdBy: string;
  /** The email address that it was sent to. */
  email: string | null;
  createdAt: number;
  expiresAt: number;
};

// Per day. More would let a user fill the mailboxes of others.
const MAILS_PER_USER = 50;
const MAILS_PER_ADDRESS = 5;

type Creation = {
  organizationId: string;
  role: Role;
  lifetimeMs: number;
  actor: Actor;
  email?: string;
};

/** Inserts an invitation and records its event. Part of the caller's transaction. */
export async function insertInvitation(
  trx: Knex.Transaction,
  outbox: Outbox,
  { organizationId, role, lifetimeMs, actor, email }: Creation,
): Promise<{ invitation: Invitation; token: string }> {
  const token = newSecret("");
  const now = Date.now();
  const invitation: Invitation = {
    id: newId("inv"),
    role,
    createdBy: actor.id,
    email: email ?? null,
    createdAt: now,
    expiresAt: now + lifetimeMs,
  };
  await trx("invitations").insert({
    id: invitation.id,
    id_hash: sha256(token),
    organization_id: organizationId,
    role,
    created_by: actor.id,
    email: invitation.email,
    created_at: now,
    expires_at: invitation.expiresAt,
  });
  await outbox.record(trx, actor, {
    organizationId,
    type: "invitation.created",
    subject: invitation.id,
    data: { invitation_id: invitation.id, role },
  });
  return { invitation, token };
}

/** Returns whether a user may send another invitation by email, to this address. */
export async function mayMail(trx: Knex.Transaction, userId: string, email: string): Promise<boolean> {
  const byUser = await countMails(trx, { kind: "invitation", user_id: userId });
  const byAddress = await countMails(trx, { kind: "invitation", recipient: email });
  return byUser < MAILS_PER_USER && byAddress < MAILS_PER_ADDRESS;
}
