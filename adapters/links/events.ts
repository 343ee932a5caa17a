import type { EventType } from "../../resources/events/types.ts";
import type { Link, LinkFields } from "../../resources/links/types.ts";
import type { DomainEvent } from "../events/outbox.ts";

// The audit log is kept for years, and a client can update a link without end.
const MAX_METADATA_BYTES = 2000;

/** Returns the domain event of a new link. */
export function linkCreated(link: Link): DomainEvent {
  return eventOf("link.created", link, { link });
}

/** Returns the domain event of an update. The audit log keeps the changed fields, webhooks get the whole link. */
export function linkUpdated(link: Link, fields: Partial<LinkFields>, changed: string[]): DomainEvent {
  const { id, slug, updatedAt } = link;
  const data = { link: { id, slug, updatedAt, ...withoutLargeMetadata(fields) }, changed };
  return { ...eventOf("link.updated", link, data), delivered: { link, changed } };
}

/** Returns the domain event of a deletion. */
export function linkDeleted(link: Link): DomainEvent {
  const audited = withoutLargeMetadata(link);
  const event = eventOf("link.deleted", link, { link: audited });
  return audited === link ? event : { ...event, delivered: { link } };
}

function eventOf(type: EventType, { id, organizationId }: Link, data: object): DomainEvent {
  return { organizationId, type, subject: id, data };
}

/** Leaves out metadata that is too large for the audit log. */
function withoutLargeMetadata<T extends { metadata?: Link["metadata"] | undefined }>(
  fields: T,
): T | Omit<T, "metadata"> {
  const { metadata, ...rest } = fields;
  const isLarge = Buffer.byteLength(JSON.stringify(metadata ?? {})) > MAX_METADATA_BYTES;
  return isLarge ? rest : fields;
}
