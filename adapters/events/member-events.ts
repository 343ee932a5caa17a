import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Database } from "../database/index.ts";
import type { DomainEvent, Outbox } from "./outbox.ts";

export type MemberEvent = {
  userId: string;
  type: Extract<EventType, `member.${string}`>;
  /** Further data, as the schema of the type describes it. */
  [field: string]: unknown;
};

export type MemberEventStore = ReturnType<typeof createMemberEventStore>;

export function createMemberEventStore({ transaction }: Database, outbox: Outbox) {
  return {
    record: (actor: Actor, event: MemberEvent) =>
      transaction((trx) => recordForMember(trx, outbox, actor, event)),
  };
}

export async function recordForMember(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  event: MemberEvent,
): Promise<void> {
  const organizationIds = await trx("memberships").where({ user_id: event.userId }).pluck("organization_id");
  await outbox.record(trx, actor, ...organizationIds.map((id) => memberEvent(id, event)));
}

/** Describes what concerns a member to one organization only. */
export function memberEvent(organizationId: string, { userId, type, ...extra }: MemberEvent): DomainEvent {
  return { organizationId, type, subject: userId, data: { user_id: userId, ...extra } };
}
