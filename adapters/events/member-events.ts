import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Database } from "../database/index.ts";
import type { Outbox } from "./outbox.ts";

/** An event of a user that concerns every organization of theirs. */
export type MemberEvent = {
  userId: string;
  type: Extract<EventType, `member.${string}`>;
  /** Further data, as the schema of the type describes it. */
  [field: string]: unknown;
};

/** Records what users do with their accounts. */
export type MemberEventStore = {
  /** Records an event in each of the user's organizations. */
  record(actor: Actor, event: MemberEvent): Promise<void>;
};

/** Creates the store of member events of a database. */
export function createMemberEventStore({ transaction }: Database, outbox: Outbox): MemberEventStore {
  return { record: (actor, event) => transaction((trx) => recordForMember(trx, outbox, actor, event)) };
}

/**
 * Records a change to a user's account, or a sign-in, for each of their organizations, because it affects access to all of
 * them. Part of the caller's transaction.
 */
export async function recordForMember(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { userId, type, ...extra }: MemberEvent,
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
