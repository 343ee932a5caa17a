import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import { assertNotStale, type Precondition, preconditionFailed } from "../http/etag.ts";
import type { Cursors } from "../http/pagination.ts";
import { found, notFound, Problem } from "../http/problem.ts";
import { validate } from "../http/validate.ts";
import { type Limits, throwQuotaProblem } from "../plans.ts";
import { createWorkQueue } from "../work-queue.ts";
import {
  type AnalyticsView,
  type ClicksFromView,
  parseDateRange,
  parseOrigin,
  toAnalyticsView,
  toClicksFromView,
} from "./analytics.ts";
import { createLinksInBulk } from "./bulk.ts";
import { LINKS_LENGTH, readBulkUpdate } from "./bulk-update.ts";
import { type ChangeResult, changeEach, readAction, selectionSchema } from "./change-many.ts";
import { type Changes, updateOf } from "./changes.ts";
import { assertEnabled, assertNoConflict, tryCreateLink, upsertLink } from "./create.ts";
import { withForwardedQuery } from "./forwarded-query.ts";
import { createLinkList, createMatches } from "./list.ts";
import { isReserved, isSlug, type ReservedNames } from "./rules.ts";
import { linkSchemas, linkTag, toFields, withExternalId } from "./schema.ts";
import type {
  ClickedLink,
  ClickSource,
  Link,
  LinkChanges,
  LinkStore,
  Metadata,
  RedirectType,
  ResolvedLink,
} from "./types.ts";

type LinksOptions = { store: LinkStore; cursors: Cursors } & ReservedNames;

// A URL that the URL parser would return unchanged. Most destinations match, and needn't be parsed for each redirect.
const NORMALIZED_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

const UNAVAILABLE = "The link has expired or was removed by its owner.";

export type Redirect = { status: RedirectType; location: string };

/** What visitors may know about a link: where it leads, its title, and when it was created. */
export type LinkPreview = Pick<Link, "slug" | "url" | "title" | "createdAt">;

export type LinkService = ReturnType<typeof createLinkService>;

// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING_READS = 30;
// Few organizations use a tag that none of these has, and they are read in milliseconds.
const LINKS_WITH_SUGGESTED_TAGS = 1000;
const SUGGESTED_TAGS = 100;

/** Manages links for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createLinkService({ store, cursors, ...reserved }: LinksOptions) {
  const schemas = linkSchemas(reserved);
  // Reads may take seconds, on a thread of their own; other work takes milliseconds of this one.
  const queues = {
    reads: createWorkQueue({ maxWaiting: MAX_WAITING_READS, pauses: false }),
    work: createWorkQueue(),
  };
  const matches = createMatches(store, queues.reads);
  const create = async (caller: Caller, input: unknown) =>
    assertNoConflict(await tryCreateLink(store, caller, validate(schemas.create, input)));

  async function get({ organizationId }: Caller, id: string): Promise<Link> {
    return found(await store.find(organizationId, id), "link");
  }

  async function checkVersion(caller: Caller, id: string, precondition?: Precondition) {
    if (!precondition) return undefined;
    const link = await get(caller, id);
    if (!precondition(linkTag(link))) throw preconditionFailed("link");
    return link.version;
  }

  async function resolve(slug: string): Promise<ResolvedLink> {
    const link = found(await store.resolve(slug), "link");
    if (link.isDisabled && !link.isDeleted) throw gone("The link has been disabled.");
    return link;
  }

  /**
   * Resolves a slug to its redirect, and counts a click if its source is given (a HEAD request has none). The redirect
   * of an unavailable link is to its fallback, and isn't counted. @param query as the visitor sent it, without `?`
   * @throws Problem 404 or 410
   */
  async function redirect(slug: string, source?: ClickSource, query = ""): Promise<Redirect> {
    const link = await resolve(slug);
    const clickedAt = Date.now();
    const isFollowed =
      isActive(link, clickedAt) && (!source || (await store.click(link, { ...source, clickedAt })));
    if (isFollowed) {
      const destination = toLocation(link.url);
      const location = link.forwardQuery ? withForwardedQuery(destination, query) : destination;
      return { status: link.redirectType, location };
    }
    const fallback = await store.findFallback(link.id);
    if (fallback === null) throw gone(UNAVAILABLE);
    return { status: 302, location: toLocation(fallback) };
  }

  /** Resolves a slug to what visitors may know about its link. Never redirects, and counts nothing. */
  async function preview(slug: string): Promise<LinkPreview> {
    const resolved = await resolve(slug);
    const isFound = isActive(resolved, Date.now());
    const link = isFound ? await store.find(resolved.organizationId, resolved.id) : undefined;
    if (!link) throw gone(UNAVAILABLE);
    return { slug, url: toLocation(link.url), title: link.title, createdAt: link.createdAt };
  }

  async function change(
    { organizationId, actor }: Caller,
    id: string,
    changes: LinkChanges | ((link: Link) => LinkChanges),
    version?: number,
  ): Promise<Link> {
    const updated = await store.update(organizationId, id, changes, actor, version).catch(throwQuotaProblem);
    return assertNoConflict(assertNotStale(assertEnabled(found(updated, "link")), "link"));
  }

  /** Makes changes that depend on the link. Nothing is stored if it stays as it is. */
  async function changeWith(caller: Caller, id: string, changes: Changes) {
    let version = 0;
    const link = await change(caller, id, (current) => {
      version = current.version;
      return toFields(validate(schemas.update, updateOf(current, changes)));
    });
    return { link, isChanged: link.version !== version };
  }

  async function remove(caller: Caller, id: string, precondition?: Precondition): Promise<void> {
    const version = await checkVersion(caller, id, precondition);
    const result = await store.remove(caller.organizationId, id, caller.actor, version);
    const removed = assertNotStale(result, "link");
    if (!removed) throw notFound("link");
  }

  return {
    schemas,
    create,
    get,
    async getByExternalId({ organizationId }: Caller, externalId: string): Promise<Link> {
      return found(await store.findByExternalId(organizationId, externalId), "link");
    },
    list: createLinkList(store, cursors, queues),
    matches,
    redirect,
    preview,
    /** Creates up to as many links as the plan allows. Each counts as a call. Results are in input order. */
    createMany: (caller: Caller & { countFurther: CountFurther }, input: unknown, limits: Limits) =>
      queues.work(caller.organizationId, () =>
        createLinksInBulk(input, limits, caller.countFurther, (link, index) =>
          create(callerAt(caller, index), link),
        ),
      ),
    /** Replaces the given fields; with `isMerge`, adds the given metadata to the current one instead (RFC 7396). */
    async update(
      caller: Caller,
      id: string,
      input: unknown,
      precondition?: Precondition,
      isMerge = false,
    ): Promise<Link> {
      const given = toFields(validate(schemas.update, input));
      const changes = ({ metadata }: Link) => ({
        ...given,
        ...(given.metadata && validate(schemas.update, { metadata: merge(metadata, given.metadata) })),
      });
      return change(caller, id, isMerge ? changes : given, await checkVersion(caller, id, precondition));
    },
    /** Creates the link with this external id, or replaces its fields; an omitted slug is kept. */
    async upsert(caller: Caller, externalId: string, input: unknown, precondition?: Precondition) {
      const fields = validate(withExternalId(schemas.create, externalId), input);
      return upsertLink(store, caller, externalId, fields, precondition);
    },
    remove,
    /** Changes or deletes up to 1,000 selected links, each as a request of its own would. */
    async changeMany(caller: Caller, input: unknown): Promise<ChangeResult[]> {
      const { ids, changes } = readAction(input);
      const apply = (id: string) =>
        changes === "delete"
          ? remove(caller, id).then(() => ({ isChanged: true }))
          : changeWith(caller, id, changes);
      return changeEach(ids, { apply, enqueue: (work) => queues.work(caller.organizationId, work) });
    },
    /** Changes up to 100 links, or those that match a filter. Each counts as a call. Returns links of up to `maxLength` characters. */
    async updateMany(
      caller: Caller & { countFurther: CountFurther },
      input: unknown,
      limits: Limits,
      maxLength = LINKS_LENGTH,
    ): Promise<ChangeResult[]> {
      const { filter, changes, ...given } = readBulkUpdate(input, limits);
      const { expected_count: expected = 0 } = given;
      const ids = given.ids ?? (await matches.findExpected(caller, filter, expected));
      if (ids.length > 1) await caller.countFurther(ids.length - 1);
      const apply = (id: string) => changeWith(caller, id, changes);
      return changeEach(ids, {
        apply,
        enqueue: (work) => queues.work(caller.organizationId, work),
        maxLength,
      });
    },
    /** Returns those of up to 100 links that exist, newest first. */
    getMany({ organizationId }: Caller, input: unknown): Promise<Link[]> {
      const { ids } = validate(selectionSchema, input);
      return queues.work(organizationId, () => store.findMany(organizationId, ids));
    },
    async findBySlug({ organizationId }: Caller, slug: string): Promise<Link | undefined> {
      const resolved = isSlug(slug) ? await store.resolve(slug) : undefined;
      return resolved?.organizationId === organizationId
        ? store.find(organizationId, resolved.id)
        : undefined;
    },
    /** Suggests slugs with a prefix, those of the newest links first. Resolves to none if the search takes too long. */
    async suggestSlugs({ organizationId }: Caller, prefix: string, count: number): Promise<string[]> {
      if (prefix !== "" && !isSlug(prefix.replace(/\/$/, ""))) return [];
      const filter = prefix === "" ? {} : { slugPrefix: prefix };
      const found = await queues.reads(organizationId, () => store.list(organizationId, filter, count));
      return found === "timeout" ? [] : found.map(({ slug }) => slug);
    },
    /** Suggests tags with a prefix, in either case: those of the newest links, most used first. */
    async suggestTags({ organizationId }: Caller, prefix = "", count = SUGGESTED_TAGS): Promise<string[]> {
      const counts = new Map<string, number>();
      for (const tag of (await store.newestTags(organizationId, LINKS_WITH_SUGGESTED_TAGS)).flat()) {
        counts.set(tag, (counts.get(tag) ?? 0) + 1);
      }
      const mostUsed = [...counts].sort(([, one], [, other]) => other - one);
      return mostUsed
        .map(([tag]) => tag)
        .filter((tag) => tag.toLowerCase().startsWith(prefix.toLowerCase()))
        .slice(0, count);
    },
    isReserved: (slug: string) => isReserved(slug, reserved),
    /** Returns the analytics of one link, or of all links if `id` is undefined. */
    async analytics(caller: Caller, id: string | undefined, query: unknown): Promise<AnalyticsView> {
      const { from, to } = parseDateRange(query);
      if (id !== undefined) await get(caller, id);
      const read = () => store.analytics(caller.organizationId, id, from, to);
      const analytics = await (id === undefined ? queues.reads(caller.organizationId, read) : read());
      return toAnalyticsView(analytics, from, to);
    },
    /** Returns the clicks of one referrer, country, device, browser or operating system, on one link or on all. */
    async clicksFrom(caller: Caller, id: string | undefined, query: unknown): Promise<ClicksFromView> {
      const { origin, from, to } = parseOrigin(query);
      if (id !== undefined) await get(caller, id);
      const read = () => store.clicksFrom(caller.organizationId, id, origin, from, to);
      return toClicksFromView(origin, await queues.reads(caller.organizationId, read), from, to);
    },
    /** Returns the organization's links with the most clicks in a range of days, most first, without deleted ones. */
    async topLinks({ organizationId }: Caller, query: unknown, count: number): Promise<ClickedLink[]> {
      const { from, to } = parseDateRange(query);
      return queues.reads(organizationId, () => store.topLinks(organizationId, from, to, count));
    },
    /** As `topLinks`, by the clicks of one origin, among the 100 links with the most clicks. */
    async topLinksFrom({ organizationId }: Caller, query: unknown, count: number): Promise<ClickedLink[]> {
      const { origin, from, to } = parseOrigin(query);
      return queues.reads(organizationId, () => store.topLinks(organizationId, from, to, count, origin));
    },
  };
}

function merge(current: Metadata, patch: Metadata): Metadata {
  return Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([key]) => patch[key] !== null));
}

function callerAt({ linkId, ...caller }: Caller, index: number): Caller {
  return { ...caller, ...(linkId && { linkId: () => linkId(index) }) };
}

function gone(detail: string): Problem {
  return new Problem(410, "link_gone", detail);
}

/** Links keep a URL as it was sent, but a header holds only ASCII. */
function toLocation(url: string): string {
  return NORMALIZED_URL.test(url) ? url : new URL(url).href;
}

function isActive(link: ResolvedLink, now: number): boolean {
  const { isDeleted, archived, expiresAt } = link;
  return !isDeleted && !archived && (expiresAt ?? Infinity) > now && !hasReachedLimit(link);
}

/** The limit is of all clicks, those of known bots included. */
export function hasReachedLimit({
  clicks,
  botClicks,
  maxClicks,
}: Pick<Link, "clicks" | "botClicks" | "maxClicks">): boolean {
  return maxClicks !== null && clicks + botClicks >= maxClicks;
}
