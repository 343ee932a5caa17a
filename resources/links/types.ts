import type { By } from "./events.ts";
import type { Plan } from "./plans.ts";
import type { Role } from "./scopes.ts";

/**
 * What a live access token says: RFC 7662 §2.2 in our words.
 * `plan` is the one that decides: `free` as soon as the client's organization or the one acted for is on it.
 */
export type ActiveToken = {
  clientId: string;
  /** The person who allowed it; absent for client credentials. */
  userId?: string;
  /** The organization acted for. */
  organizationId: string;
  plan: Plan;
  /** The user's current role in that organization; absent for client credentials, and where `scopes` is limited to it. */
  role?: Role;
  /** What was granted. What the token opens is `allowedByRole(scopes, role)`. */
  scopes: ReadonlySet<string>;
  /** The resource that the token is for (RFC 8707). */
  audience: string;
  /** Epoch seconds. */
  expiresAt: number;
};

/**
 * The one question that the resources ask. Resolves to nothing for whatever is not a live access token: unknown,
 * expired, revoked, of a dead grant, a first-party one. Must not answer from memory: a revocation counts at once.
 * Rejects only when the question could not be asked.
 */
export type Introspect = (token: string) => Promise<ActiveToken | undefined>;

/** A link as it is kept. Times are epoch milliseconds. */
export type Link = {
  id: string;
  organizationId: string;
  slug: string;
  url: string;
  title: string | null;
  tags: string[];
  externalId: string | null;
  metadata: Metadata;
  archived: boolean;
  expiresAt: number | null;
  maxClicks: number | null;
  redirectType: RedirectType;
  clicks: number;
  lastClickedAt: number | null;
  /** Grows with every change, not with clicks. */
  version: number;
  /** The client or the person who made it. */
  createdBy: string;
  createdAt: number;
  updatedAt: number;
};

export type RedirectType = 301 | 302 | 307 | 308;
export type MetadataValue = string | number | boolean | null;
export type Metadata = Record<string, MetadataValue>;

/** What the caller may set. */
export type LinkFields = Pick<
  Link,
  | "slug"
  | "url"
  | "title"
  | "tags"
  | "externalId"
  | "metadata"
  | "archived"
  | "expiresAt"
  | "maxClicks"
  | "redirectType"
>;

export type LinkFilter = { search?: string; tag?: string; archived?: boolean };

/**
 * Where links are kept. Every call but `resolve` and `click` is bound to one organization, and every change is written
 * down with it, as an event whose data is `{link, changed?}`.
 */
export type LinkStore = {
  /** Resolves to the field whose value is taken if it cannot be made. `id` absent: a new one. */
  create(organizationId: string, by: By, fields: LinkFields, id?: string): Promise<Link | Taken>;
  find(organizationId: string, id: string): Promise<Link | undefined>;
  /** Newest first; `before` is the id of the last one of the page before. */
  list(organizationId: string, filter: LinkFilter, limit: number, before?: string): Promise<Link[]>;
  findByExternalId(organizationId: string, externalId: string): Promise<Link | undefined>;
  /**
   * Changes a link; nothing when it is gone, `stale` when it has another version than the one given. What it has already
   * is no change: its version stays, and nothing is written down.
   */
  update(
    organizationId: string,
    id: string,
    changes: Partial<LinkFields>,
    by: By,
    version?: number,
  ): Promise<Link | Taken | "stale" | undefined>;
  /** Whether there was one to delete. `version` absent: whichever it has. */
  remove(organizationId: string, id: string, by: By, version?: number): Promise<boolean | "stale">;
  /** The link behind a slug, deleted ones included (`gone`), for whoever follows it. */
  resolve(slug: string): Promise<Destination | undefined>;
  /** Counts one click. False when `max_clicks` is used up: exact, however many at once. */
  click(destination: Destination, click: Click): Promise<boolean>;
  /** The clicks of one link, or of all, from one day to another, both included: days since 1970 in UTC. */
  analytics(organizationId: string, linkId: string | undefined, from: number, to: number): Promise<Analytics>;
  count(organizationId: string): Promise<number>;
};

export type Taken = { taken: "slug" | "external_id" };

/** What a redirect needs to know. */
export type Destination = Pick<
  Link,
  | "id"
  | "organizationId"
  | "slug"
  | "url"
  | "archived"
  | "expiresAt"
  | "clicks"
  | "maxClicks"
  | "redirectType"
> & { gone: boolean };

/** One click, with what is known of where it came from. */
export type Click = {
  /** Epoch milliseconds. */
  at: number;
  /** The host that led there. */
  referrer: string | null;
  /** ISO 3166-1 alpha-2. */
  country: string | null;
  /** A program that says that it is one. */
  bot: boolean;
};

/** Clicks added up. The most frequent referrers and countries come first, known bots left out. */
export type Analytics = {
  /** Only days with clicks, those of bots apart. */
  days: { day: number; bot: boolean; clicks: number }[];
  referrers: Share[];
  countries: Share[];
};

/** How many clicks came from one place; from nowhere that is known: null. */
export type Share = { name: string | null; clicks: number };

/** How often something was done in the current minute, this time included, and the seconds until the next one begins. */
export type Count = { calls: number; seconds: number };

/** Counts the calls of the API and MCP. Must never reject: without a memory that is shared it counts by itself. */
export type CallCounter = {
  ofAddress(address: string): Promise<Count>;
  /** @param calls how many came at once */
  ofOrganization(id: string, calls: number): Promise<Count>;
};

/** What the resources may read of an organization. */
export type OrganizationReader = {
  find(id: string): Promise<{ id: string; name: string; plan: Plan } | undefined>;
};
