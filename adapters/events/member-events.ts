import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Outbox } from "./outbox.ts";

type SignInChange = "member.password_changed" | "member.identity_linked" | "member.identity_unlinked";

/**
 * Records a change to how a user signs in for each of their organizations, because it affects access to all of them. Part of
 * the caller's transaction.
 */
export async function recordForMember(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  {
    userId,
    type,
    ...extra
  }: {
    userId: string;
    type: SignInChange;
    issuer?: string;
    /** Who created the reset link that was used: a user ID or `operator`. */
    reset_link_created_by?: string;
  },
): Promise<void> {
  const organizationIds: string[] = await trx("memberships")
    .where({ user_id: userId })
    .pluck("organization_id");
  const data = { user_id: userId, ...extra };
  const events = organizationIds.map((organizationId) => ({
    organizationId,
    type,
    subject: userId,
    data,
  }));
  await outbox.record(trx, actor, ...events);
}
