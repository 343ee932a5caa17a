import type { Actor } from "../access/actor.ts";
import type { Limits } from "../plans.ts";
import type { Device } from "./redirect-rules.ts";
import type { Link, LinkChanges, LinkFields } from "./schema.ts";

export type { Link, LinkChanges, LinkFields };

/** The fields of a link that was created with a URL and a slug only. */
export const LINK_DEFAULTS: Omit<LinkFields, "url" | "slug"> = {
  domain: null,
  title: null,
  tags: [],
  externalId: null,
  metadata: {},
  archived: false,
  expiresAt: null,
  maxClicks: null,
  redirectType: 302,
  fallbackUrl: null,
  forwardQuery: true,
  forwardPath: false,
  rules: [],
  card: null,
  passwordHash: null,
};

export type RedirectType = Link["redirectType"];
export type Card = NonNullable<Link["card"]>;

export type LinkFilter = {
  search?: string | undefined;
  tag?: string | undefined;
  archived?: boolean | undefined;
  slugPrefix?: string | undefined;
  slug?: string | undefined;
  /** The host of a domain; null for the server's own. */
  domain?: string | null | undefined;
  url?: string | undefined;
  externalId?: string | undefined;
  /** Epoch milliseconds, inclusive. */
  createdAfter?: number | undefined;
  /** Epoch milliseconds, exclusive. An import keeps the times of its links. */
  createdBefore?: number | undefined;
};

export type LinkSort = "created_at" | "clicks" | "last_clicked_at";

/** A boundary between two links of a list: below the link with this id, when it had the value that sorts the list. */
export type Boundary = { id: string; value: number };

/** The part of a list on one side of a boundary. */
export type ListPart = {
  /** `created_at` by default. Links that were never clicked come after all others in descending order. */
  sort?: LinkSort;
  from?: Boundary | undefined;
  /** Whether the order is ascending, and the links above the boundary are read. */
  isAscending?: boolean;
};

/** The ids of links, newest first. Unless it `isComplete`, or is as long as allowed, more may match. */
export type FoundIds = { ids: string[]; isComplete: boolean };

/** A link of another service, which keeps its times and its clicks so far. */
export type ImportedLink = Omit<LinkFields, "passwordHash"> &
  Pick<Link, "createdAt" | "clicks" | "botClicks" | "lastClickedAt">;

/** `"exists"`: the organization has a link with this slug and URL. */
export type ImportOutcome = "imported" | "exists" | LinkConflict;

/** One import. Each batch is stored as a whole or not at all. A trial stores nothing, but remembers its batches. */
export type LinkImport = {
  /** Resolves to the outcomes in order. There are fewer than links if a quota is `exceeded`: the others are not stored. */
  add(links: ImportedLink[]): Promise<{ outcomes: ImportOutcome[]; exceeded?: Error }>;
};

/** The storage port of links of one organization. Every change is stored with an event, `{link, changed?}`; an import with one per batch. */
export type LinkStore = {
  /** Creates a link; resolves to the conflict if a unique value is taken. @throws QuotaExceeded, as `update` */
  create(organizationId: string, actor: Actor, fields: LinkFields, id?: string): Promise<Link | LinkConflict>;
  /** `format` is what the event of each batch calls the file. */
  beginImport(organizationId: string, actor: Actor, format: string, isTrial: boolean): LinkImport;
  find(organizationId: string, id: string): Promise<Link | undefined>;
  /** Lists links, by default newest first. Resolves to `"timeout"` if a search takes too long. */
  list(
    organizationId: string,
    filter: LinkFilter,
    limit: number,
    part?: ListPart,
  ): Promise<Link[] | "timeout">;
  /** Lists only ids, at most `limit`, newest first; ends after about `maxCompared` links, or with `"timeout"` like `list`. */
  listIds(
    organizationId: string,
    filter: LinkFilter,
    limit: number,
    maxCompared?: number,
  ): Promise<FoundIds | "timeout">;
  /** Finds those that exist, newest first. */
  findMany(organizationId: string, ids: string[]): Promise<Link[]>;
  findByExternalId(organizationId: string, externalId: string): Promise<Link | undefined>;
  /** `"disabled"`: by the operator; `"stale"`: another `version`. Changing no value keeps it and stores no event. */
  update(
    organizationId: string,
    id: string,
    changes: LinkChanges | ((link: Link) => LinkChanges),
    actor: Actor,
    version?: number,
  ): Promise<Link | LinkConflict | "stale" | "disabled" | undefined>;
  /** Resolves to whether the link existed, or to `"stale"` if `version` is given and isn't the current one. */
  remove(organizationId: string, id: string, actor: Actor, version?: number): Promise<boolean | "stale">;
  /** Lists the hosts of domains that links can have, or had once. */
  listHosts(organizationId: string): Promise<string[]>;
  /** Resolves to the host of the domain that new links of an organization get. */
  findDefaultDomain(organizationId: string): Promise<string | null>;
  /** Finds a link by its address, see `addressOf`; `asOf` is that of its domain. */
  resolve(address: string, asOf?: number): Promise<ResolvedLink | undefined>;
  /** Resolves to what pages of a link need; undefined if the operator disabled it, or its organization is gone. */
  findOwner(linkId: string): Promise<LinkOwner | undefined>;
  findPasswordHash(linkId: string): Promise<string | null>;
  /** Counts one click. Resolves to false if `max_clicks` is reached; the limit is exact under concurrency. */
  click(link: ResolvedLink, click: Click): Promise<boolean>;
  /** Sums clicks of one link, or of all, by day. `from` and `to` are inclusive, in days since 1970-01-01. */
  analytics(
    organizationId: string,
    linkId: string | undefined,
    from: number,
    to: number,
    filter?: ClickFilter,
  ): Promise<Analytics>;
  /** As `analytics`, but resolves only to the number of clicks of people. */
  countClicks(...range: Parameters<LinkStore["analytics"]>): Promise<number>;
  /** Resolves to the number of days, today included, of which clicks can be filtered, and to the zone of the days. */
  countedDays(organizationId: string): Promise<{ filteredDays: number; timeZone: string }>;
  /** Returns the tags of each of the newest links. */
  newestTags(organizationId: string, count: number): Promise<string[][]>;
  /**
   * The links with the most clicks of people in these days, most first, without deleted ones. With a filter, those with
   * the most clicks that match, among the links with the most clicks: at least 12.
   */
  topLinks(
    organizationId: string,
    from: number,
    to: number,
    count: number,
    filter?: ClickFilter,
  ): Promise<ClickedLink[]>;
  /** Returns what an organization's links use of its quotas. It is counted with each change. */
  usage(organizationId: string): Promise<Pick<Limits, "links" | "link_bytes">>;
};

/** The unique field whose value belongs to another link; or that the organization has no such domain. */
export type LinkConflict = { taken: "slug" | "external_id" } | { missing: "domain" };

/** The port of passwords of links. Each call takes the time of a hash, so none belongs in a transaction. */
export type LinkPasswords = {
  /** Resolves to a PHC string. @throws Problem 503 if too many passwords are being hashed */
  hash(password: string, organizationId: string): Promise<string>;
  /** Counts the attempt by link and address before it is made. @throws Problem 429 after too many wrong ones, or 503 */
  verify(hash: string, password: string, attempt: { linkId: string; address: string }): Promise<boolean>;
};

/** Whose a link is, for the pages that visitors see of it. */
export type LinkOwner = {
  /** The name of the organization. */
  name: string;
  /** Where visitors go while the link is unavailable. */
  fallbackUrl: string | null;
};

/** The part of a link that a redirect needs. */
export type ResolvedLink = Pick<Link, "id" | "organizationId" | "clicks" | "botClicks" | "hasPassword"> &
  Omit<LinkFields, "title" | "tags" | "externalId" | "metadata" | "fallbackUrl" | "card" | "passwordHash"> & {
    hasCard: boolean;
    /** That of its organization, whose days and hours clicks are counted by. */
    timeZone: string;
    /** Whether the link, or its organization, was deleted. */
    isDeleted: boolean;
    /** Whether the operator disabled the link, or suspended its organization. */
    isDisabled: boolean;
  };

export type Click = {
  /** Epoch milliseconds. */
  clickedAt: number;
  referrer: string | null;
  country: string | null;
  /** Null if the user agent doesn't tell, like the next two. */
  device: Device | null;
  browser: string | null;
  operatingSystem: string | null;
  /** Whether the user agent identifies itself as a bot. */
  bot: boolean;
  /** Where the link led; null if it has no rules. */
  destination: string | null;
  /** What the URL that the visitor was sent to has. */
  utmSource: string | null;
  utmMedium: string | null;
  utmCampaign: string | null;
};

/** What a request says about a click. */
export type ClickSource = Omit<
  Click,
  "clickedAt" | "destination" | "utmSource" | "utmMedium" | "utmCampaign"
>;

/** Aggregated clicks. Lists leave out known bots and are sorted by clicks, most first. */
export type Analytics = {
  /** Days without clicks are absent; clicks of bots have their own entries. */
  days: { day: number; bot: boolean; clicks: number }[];
  /** Those of a range of one day. Clicks that were counted without their hour are absent. */
  hours: { hour: number; bot: boolean; clicks: number }[];
} & Record<ClickList, ClicksByName[]>;

/** The clicks of one referrer, country and so on; `name` is null if it is unknown. */
export type ClicksByName = { name: string | null; clicks: number };

/** What clicks are counted by, with the name of its list. Only links with rules have destinations. */
export const CLICK_LISTS = {
  referrer: "referrers",
  country: "countries",
  device: "devices",
  browser: "browsers",
  operating_system: "operating_systems",
  destination: "destinations",
  utm_source: "utm_sources",
  utm_medium: "utm_mediums",
  utm_campaign: "utm_campaigns",
} as const;
export type ClickProperty = keyof typeof CLICK_LISTS;
export const CLICK_PROPERTIES = Object.keys(CLICK_LISTS) as ClickProperty[];
export type ClickList = (typeof CLICK_LISTS)[ClickProperty];
const OPTIONAL = ["destination", "utm_source", "utm_medium", "utm_campaign"];
/** Returns whether many clicks don't have a property, which its list leaves out. */
export const isOptional = (by: ClickProperty): boolean => OPTIONAL.includes(by);

/** The referrer, country and so on that clicks must have, all of them; empty for an unknown one. */
export type ClickFilter = Partial<Record<ClickProperty, string | undefined>>;

export type ClickedLink = { link: Link; clicks: number };
