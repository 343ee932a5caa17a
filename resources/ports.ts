import type { Plan } from "./plans.ts";

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
export type Metadata = Record<string, string | number | boolean | null>;

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

/** Where links are kept. Every call but `resolve` and `click` is bound to one organization. */
export type LinkStore = {
  /** Resolves to the field whose value is taken if it cannot be made. */
  create(organizationId: string, createdBy: string, fields: LinkFields): Promise<Link | Taken>;
  find(organizationId: string, id: string): Promise<Link | undefined>;
  /** Newest first; `before` is the id of the last one of the page before. */
  list(organizationId: string, filter: LinkFilter, limit: number, before?: string): Promise<Link[]>;
  /** Changes a link if it still has `version`; nothing when it is gone, `stale` when somebody was faster. */
  update(
    organizationId: string,
    id: string,
    changes: Partial<LinkFields>,
    version: number,
  ): Promise<Link | Taken | "stale" | undefined>;
  /** Whether there was one to delete. `version` absent: whichever it has. */
  remove(organizationId: string, id: string, version?: number): Promise<boolean | "stale">;
  /** The link behind a slug, deleted ones included (`gone`), for whoever follows it. */
  resolve(slug: string): Promise<Destination | undefined>;
  /** Counts one click. False when `max_clicks` is used up: exact, however many at once. */
  click(destination: Destination, at: number): Promise<boolean>;
  count(organizationId: string): Promise<number>;
};

export type Taken = { taken: "slug" | "external_id" };

/** What a redirect needs to know. */
export type Destination = Pick<
  Link,
  "id" | "url" | "archived" | "expiresAt" | "clicks" | "maxClicks" | "redirectType"
> & { gone: boolean };

/** What the resources may read of an organization. */
export type OrganizationReader = {
  find(id: string): Promise<{ id: string; name: string; plan: Plan } | undefined>;
};
