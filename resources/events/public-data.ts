import { toView } from "../links/schema.ts";
import type { Link } from "../links/types.ts";
import { EVENT_DATA_SCHEMAS } from "./schemas.ts";
import type { EventType } from "./types.ts";

export type EventData = Record<string, unknown>;

/** An event as it is stored. The audit log keeps only the changed fields of an updated link. */
export type StoredEvent = { type: EventType; data: EventData };

const IDENTIFYING = ["id", "slug", "short_url", "updated_at"];

type Composer = (data: EventData, shortUrl: string) => EventData;

const LINK_COMPOSERS: Partial<Record<EventType, Composer>> = {
  "link.created": composeLinkChange,
  "link.updated": composeLinkUpdate,
  "link.deleted": composeLinkChange,
  "link.clicked": composeClick,
};

/** Lacks fields that an older version didn't store; data of a type that only a newer version knows is unchanged. */
export function toPublicData({ type, data }: StoredEvent, shortUrl: string): EventData {
  const schema = EVENT_DATA_SCHEMAS[type];
  if (!schema) return data;
  const composed = LINK_COMPOSERS[type]?.(data, shortUrl) ?? data;
  return Object.fromEntries(Object.entries(composed).filter(([name]) => Object.hasOwn(schema.shape, name)));
}

function composeLinkChange({ link, ...data }: EventData, shortUrl: string): EventData {
  return { ...data, ...(link !== undefined && { link: toView(link as Link, shortUrl) }) };
}

function composeLinkUpdate(data: EventData, shortUrl: string): EventData {
  const { link, changed } = data as { link?: Partial<Link>; changed?: string[] };
  // Deliveries have the whole link.
  if (!link || link.createdAt !== undefined) return composeLinkChange(data, shortUrl);
  const view = toView(link as Link, shortUrl);
  const kept = Object.entries(view).filter(
    ([name, value]) => value !== undefined && [...IDENTIFYING, ...(changed ?? [])].includes(name),
  );
  return { ...data, link: Object.fromEntries(kept) };
}

function composeClick(data: EventData, shortUrl: string): EventData {
  return { ...data, short_url: `${shortUrl}/${data.slug}` };
}
