import type { Actor } from "../../resources/access/actor.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Change, DomainEvent, Outbox } from "./outbox.ts";

export type MemberEvent = {
  userId: string;
  type: Extract<EventType, `member.${string}`>;
  /** Further data, as the schema of the type describes it. */
  [field: string]: unknown;
};

export type MemberEventStore = ReturnType<typeof createMemberEventStore>;

export function createMemberEventStore(outbox: Outbox) {
  return {
    record: (actor: Actor, event: MemberEvent) =>
      outbox.change(actor, (change) => recordForMember(change, event)),
  };
}

export async function recordForMember({ trx, record }: Change, event: MemberEvent): Promise<void> {
  const organizationIds = await trx("memberships").where({ user_id: event.userId }).pluck("organization_id");
  await record(...organizationIds.map((id) => memberEvent(id, event)));
}

/** Describes what concerns a member to one organization only. */
export function memberEvent(organizationId: string, { userId, type, ...extra }: MemberEvent): DomainEvent {
  return { organizationId, type, subject: userId, data: { user_id: userId, ...extra } };
}
