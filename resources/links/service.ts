import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import { assertNotStale, type Precondition, preconditionFailed } from "../http/etag.ts";
import type { Cursors } from "../http/pagination.ts";
import { found, notFound, Problem } from "../http/problem.ts";
import { hasAtMost } from "../http/text.ts";
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
import { type ChangeResult, changeLinks, selectionSchema } from "./change-many.ts";
import { assertEnabled, assertNoConflict, tryCreateLink, upsertLink } from "./create.ts";
import { withForwardedQuery } from "./forwarded-query.ts";
import { createLinkList, createMatches } from "./list.ts";
import { type LinkPasswords, passwordRequired } from "./passwords.ts";
import { isReserved, isSlug, type ReservedNames } from "./rules.ts";
import { type LinkInput, linkSchemas, linkTag, PASSWORD_MAX, toFields, withExternalId } from "./schema.ts";
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

type LinksOptions = { store: LinkStore; cursors: Cursors; passwords: LinkPasswords } & ReservedNames;

// A URL that the URL parser would return unchanged. Most destinations match, and needn't be parsed for each redirect.
const NORMALIZED_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

const UNAVAILABLE = "The link has expired or was removed by its owner.";

export type Redirect = { status: RedirectType; location: string };

/** What visitors may know about a link: where it leads, its title, and when it was created; or that it has a password. */
export type LinkPreview =
  | Pick<Link, "slug" | "url" | "title" | "createdAt">
  | { slug: string; hasPassword: true };

/** A visitor who entered a password, with the query of the short URL. */
export type Visitor = { source: ClickSource; query: string; address: string };

export type LinkService = ReturnType<typeof createLinkService>;

// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING_READS = 30;
// Few organizations use a tag that none of these has, and they are read in milliseconds.
const LINKS_WITH_SUGGESTED_TAGS = 1000;
const SUGGESTED_TAGS = 100;

/** Manages links for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createLinkService({ store, cursors, passwords, ...reserved }: LinksOptions) {
  const schemas = linkSchemas(reserved);
  // Reads may take seconds, on a thread of their own; other work takes milliseconds of this one.
  const queues = {
    reads: createWorkQueue({ maxWaiting: MAX_WAITING_READS, pauses: false }),
    work: createWorkQueue(),
  };
  const create = async (caller: Caller, input: unknown) => {
    const fields = await hashPassword(caller, validate(schemas.create, input));
    return assertNoConflict(await tryCreateLink(store, caller, fields));
  };

  /** Takes the time of a hash, so it comes after the validation, and before anything is locked. */
  async function hashPassword({ organizationId }: Caller, input: LinkInput): Promise<LinkChanges> {
    const { password } = input;
    const fields = toFields(input);
    if (password === undefined) return fields;
    return { ...fields, passwordHash: password && (await passwords.hash(password, organizationId)) };
  }

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
   * @throws Problem 403 if the link has a password, 404 or 410
   */
  async function redirect(slug: string, source?: ClickSource, query = ""): Promise<Redirect> {
    const link = await resolve(slug);
    if (link.hasPassword && isActive(link, Date.now()))
      throw passwordRequired("The link is protected by a password.");
    return follow(link, source, query);
  }

  /**
   * As `redirect`, for a visitor who entered a password. A fallback needs none.
   * @throws Problem 403 if it is wrong, 404, 410, 429 or 503
   */
  async function unlock(
    slug: string,
    password: string,
    { source, query, address }: Visitor,
  ): Promise<Redirect> {
    const link = await resolve(slug);
    if (isActive(link, Date.now()) && !(await isUnlockedBy(password, link.id, address)))
      throw passwordRequired("The password is wrong.");
    return follow(link, source, query);
  }

  async function isUnlockedBy(password: string, linkId: string, address: string): Promise<boolean> {
    const hash = await store.findPasswordHash(linkId);
    if (hash === null) return true;
    // What no password can be isn't worth an attempt.
    if (password === "" || !hasAtMost(PASSWORD_MAX, password)) return false;
    return passwords.verify(hash, password, { linkId, address });
  }

  async function follow(
    link: ResolvedLink,
    source: ClickSource | undefined,
    query: string,
  ): Promise<Redirect> {
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
    if (isFound && resolved.hasPassword) return { slug, hasPassword: true };
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
    matches: createMatches(store, queues.reads),
    redirect,
    unlock,
    /** Returns whether a slug is that of a link with a password. */
    async isProtected(slug: string): Promise<boolean> {
      return (await store.resolve(slug))?.hasPassword === true;
    },
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
      const valid = validate(schemas.update, input);
      const version = await checkVersion(caller, id, precondition);
      const given = await hashPassword(caller, valid);
      const changes = ({ metadata }: Link) => ({
        ...given,
        ...(given.metadata && validate(schemas.update, { metadata: merge(metadata, given.metadata) })),
      });
      return change(caller, id, isMerge ? changes : given, version);
    },
    /** Creates the link with this external id, or replaces its fields; an omitted slug is kept. */
    async upsert(caller: Caller, externalId: string, input: unknown, precondition?: Precondition) {
      const valid = validate(withExternalId(schemas.create, externalId), input);
      const fields = await hashPassword(caller, valid);
      return upsertLink(store, caller, externalId, fields, precondition);
    },
    remove,
    /** Archives, restores, tags or deletes up to 1,000 links, each as a request of its own would. */
    changeMany: (caller: Caller, input: unknown): Promise<ChangeResult[]> =>
      changeLinks(input, {
        update: (id, changes) =>
          change(caller, id, (link) => toFields(validate(schemas.update, changes(link)))),
        remove: (id) => remove(caller, id),
        enqueue: (work) => queues.work(caller.organizationId, work),
      }),
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
