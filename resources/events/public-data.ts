import { shortUrlOf, toView } from "../links/schema.ts";
import type { Link } from "../links/types.ts";
import { EVENT_DATA_SCHEMAS } from "./schemas.ts";
import type { EventType } from "./types.ts";

export type EventData = Record<string, unknown>;

/** An event as it is stored. The audit log keeps only the changed fields of an updated link. */
export type StoredEvent = { type: EventType; data: EventData };

const IDENTIFYING = ["id", "slug", "short_url", "updated_at"];

/** Lacks fields that an older version didn't store; data of a type that only a newer version knows is unchanged. */
export function toPublicData({ type, data }: StoredEvent, shortUrl: string): EventData {
  const schema = EVENT_DATA_SCHEMAS[type];
  if (!schema) return data;
  const composed = compose({ type, data }, shortUrl);
  return Object.fromEntries(Object.entries(composed).filter(([name]) => Object.hasOwn(schema.shape, name)));
}

function clickedLink({ domain, slug }: EventData) {
  return { domain: typeof domain === "string" ? domain : null, slug: String(slug) };
}

function compose({ type, data }: StoredEvent, shortUrl: string): EventData {
  if (type === "link.clicked") return { ...data, short_url: shortUrlOf(clickedLink(data), shortUrl) };
  const { link, changed = [] } = data as { link?: Partial<Link>; changed?: string[] };
  if (!link) return data;
  const view = toView(link as Link, shortUrl);
  // Deliveries have the whole link.
  if (link.createdAt !== undefined) return { ...data, link: view };
  const shown = [...IDENTIFYING, ...changed];
  const kept = Object.entries(view).filter(([name, value]) => value !== undefined && shown.includes(name));
  return { ...data, link: Object.fromEntries(kept) };
}
