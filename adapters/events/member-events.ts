import type { Knex } from "knex";
import type { By } from "../resources/events.ts";
import type { Journal } from "./journal.ts";

/** What became of the way in which a person signs in. */
type Change = "member.password_changed" | "member.identity_linked" | "member.identity_unlinked";

/**
 * Writes down in every organization of a person how he or she signs in from now on: it opens what they have. Part of
 * the caller's transaction.
 */
export async function recordForMember(
  trx: Knex.Transaction,
  journal: Journal,
  by: By,
  {
    userId,
    type,
    ...extra
  }: {
    userId: string;
    type: Change;
    issuer?: string;
    /** Who created the link that set the password: a user id, or `operator`. */
    reset_link_created_by?: string;
  },
): Promise<void> {
  const organizationIds: string[] = await trx("memberships")
    .where({ user_id: userId })
    .pluck("organization_id");
  const data = { user_id: userId, ...extra };
  const happenings = organizationIds.map((organizationId) => ({
    organizationId,
    type,
    subject: userId,
    data,
  }));
  await journal.record(trx, by, ...happenings);
}
