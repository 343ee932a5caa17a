import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import type { ServedDomain } from "../domains/types.ts";
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
import { LINKS_LENGTH, readBulkUpdate } from "./bulk-update.ts";
import { CHANGED_MAX, type ChangeResult, changeEach, readAction, selectionSchema } from "./change-many.ts";
import { type Changes, updateOf } from "./changes.ts";
import { assertAllowedSlug, assertEnabled, assertNoConflict, tryCreateLink, upsertLink } from "./create.ts";
import { withForwardedPath } from "./forwarded-path.ts";
import { withForwardedQuery } from "./forwarded-query.ts";
import { createLinkList, createMatches, createSuggestions } from "./list.ts";
import { type LinkPasswords, passwordRequired } from "./passwords.ts";
import { destinationOf, varyOf } from "./redirect-rules.ts";
import { addressOf, isReserved, isSlug, type ReservedNames, SEGMENTS_MAX } from "./rules.ts";
import { type LinkInput, linkSchemas, linkTag, PASSWORD_MAX, toFields, withExternalId } from "./schema.ts";
import type {
  Card,
  ClickedLink,
  ClickSource,
  Link,
  LinkChanges,
  LinkStore,
  RedirectType,
  ResolvedLink,
} from "./types.ts";
import type { Visitor } from "./visitor.ts";

type LinksOptions = { store: LinkStore; cursors: Cursors; passwords: LinkPasswords } & ReservedNames;

// A URL that the URL parser would return unchanged. Most destinations match, and needn't be parsed for each redirect.
const NORMALIZED_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

const UNAVAILABLE = "The link has expired or was removed by its owner.";

export type Redirect = {
  status: RedirectType;
  location: string;
  /** The link, if it has a card. */
  card: ResolvedLink | undefined;
  /** What the location depends on but the URL, as the value of `Vary`; empty for most links. */
  vary: string;
};

/** Where a link is looked for: a path without the slash in front, on the server's own host or on that of a domain. */
export type Place = { path: string; domain?: ServedDomain | undefined };

export type Visit = Pick<Visitor, "query" | "readLanguage"> & {
  source: ClickSource;
  isCounted: boolean;
};

/** What visitors may know about a link: where it leads, its title, and when it was created; or that it has a password. */
export type LinkPreview =
  | Pick<Link, "slug" | "url" | "title" | "createdAt" | "rules">
  | { slug: string; hasPassword: true };

export type LinkService = ReturnType<typeof createLinkService>;

// Of the links that keep a domain.
const NAMED_MAX = 10;
// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING_READS = 30;

/** Manages links for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createLinkService({ store, cursors, passwords, ...reserved }: LinksOptions) {
  const schemas = linkSchemas(reserved);
  // Reads may take seconds, on a thread of their own; other work takes milliseconds of this one.
  const queues = {
    reads: createWorkQueue({ maxWaiting: MAX_WAITING_READS, pauses: false }),
    work: createWorkQueue(),
  };
  const matches = createMatches(store, queues.reads, reserved.shortHost);
  const create = async (caller: Caller, input: unknown) => {
    const valid = validate(schemas.create, input);
    const fields = { ...toFields(valid), ...(await hashPassword(caller, valid.password)) };
    return assertNoConflict(await tryCreateLink(store, caller, fields, reserved));
  };

  /** Takes the time of a hash, so it comes after the validation, and before anything is locked. */
  async function hashPassword(
    { organizationId }: Caller,
    password: LinkInput["password"],
  ): Promise<LinkChanges> {
    if (password === undefined) return {};
    return { passwordHash: password && (await passwords.hash(password, organizationId)) };
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

  const resolveAt = ({ path, domain }: Place) => store.resolve(addressOf(path, domain));

  /** Finds the link of a path, or that with the longest slug of those that forward the rest of it. */
  async function findByPath({
    path,
    domain,
  }: Place): Promise<{ link: ResolvedLink; rest: string } | undefined> {
    const slug = path.endsWith("/") ? path.slice(0, -1) : path;
    const exact = isSlug(slug) ? await resolveAt({ path: slug, domain }) : undefined;
    if (exact) return { link: exact, rest: "" };
    const segments = path.split("/", SEGMENTS_MAX + 1);
    const slugs = segments.map((_, index) => segments.slice(0, index).join("/")).filter(isSlug);
    const links = await Promise.all(slugs.map((one) => resolveAt({ path: one, domain })));
    const link = links.findLast((one) => one?.forwardPath && !one.isDeleted);
    return link && { link, rest: path.slice(link.slug.length + 1) };
  }

  async function resolvePath(place: Place) {
    const resolved = await findByPath(place);
    if (!resolved) throw notFound("link");
    assertNotDisabled(resolved.link);
    return resolved;
  }

  /**
   * Resolves the path of a short link to its redirect, and counts a click. The redirect of an unavailable link is to its
   * fallback, and isn't counted.
   * @throws Problem 403 if the link has a password, 404 or 410
   */
  async function redirect(place: Place, visit: Visit): Promise<Redirect> {
    const { link, rest } = await resolvePath(place);
    if (link.hasPassword && isActive(link, Date.now()))
      throw passwordRequired("The link is protected by a password.");
    return follow(link, rest, visit);
  }

  /**
   * As `redirect`, for a visitor who entered a password. A fallback needs none.
   * @throws Problem 403 if it is wrong, 404, 410, 429 or 503
   */
  async function unlock(place: Place, password: string, address: string, visit: Visit): Promise<Redirect> {
    const { link, rest } = await resolvePath(place);
    if (isActive(link, Date.now()) && !(await isUnlockedBy(password, link.id, address)))
      throw passwordRequired("The password is wrong.");
    return follow(link, rest, visit);
  }

  async function isUnlockedBy(password: string, linkId: string, address: string): Promise<boolean> {
    const hash = await store.findPasswordHash(linkId);
    if (hash === null) return true;
    // What no password can be isn't worth an attempt.
    if (password === "" || !hasAtMost(PASSWORD_MAX, password)) return false;
    return passwords.verify(hash, password, { linkId, address });
  }

  async function follow(link: ResolvedLink, rest: string, visit: Visit): Promise<Redirect> {
    const clickedAt = Date.now();
    const chosen = chooseDestination(link, visit, clickedAt);
    const location = addToDestination(chosen, rest, link, visit.query);
    const { rules, hasCard, redirectType: status } = link;
    const destination = rules.length > 0 ? chosen : null;
    const isFollowed =
      isActive(link, clickedAt) &&
      (!visit.isCounted || (await store.click(link, { ...visit.source, clickedAt, destination })));
    const card = hasCard ? link : undefined;
    if (isFollowed) return { status, location, card, vary: rules.length > 0 ? varyOf(rules) : "" };
    const fallback = await store.findFallback(link.id);
    if (fallback === null) throw gone(UNAVAILABLE);
    return { status: 302, location: toLocation(fallback), card: undefined, vary: "" };
  }

  /** Resolves to the card of a link, or null if it has none. Counts nothing. */
  async function readCard({ organizationId, id }: ResolvedLink): Promise<Card | null> {
    const link = await store.find(organizationId, id);
    return link?.card ?? null;
  }

  /** Resolves to what visitors may know about the link with a slug. Never redirects, and counts nothing. */
  async function preview(place: Place): Promise<LinkPreview> {
    const resolved = assertNotDisabled(found(await resolveAt(place), "link"));
    const { slug } = resolved;
    const isFound = isActive(resolved, Date.now());
    if (isFound && resolved.hasPassword) return { slug, hasPassword: true };
    const link = isFound ? await store.find(resolved.organizationId, resolved.id) : undefined;
    if (!link) throw gone(UNAVAILABLE);
    const { title, createdAt } = link;
    const rules = link.rules.map((rule) => ({ ...rule, url: toLocation(rule.url) }));
    return { slug, url: toLocation(link.url), title, createdAt, rules };
  }

  async function change(
    { organizationId, actor }: Caller,
    id: string,
    changes: LinkChanges | ((link: Link) => LinkChanges),
    version?: number,
  ): Promise<Link> {
    const checked = (link: Link) => {
      const changed = typeof changes === "function" ? changes(link) : changes;
      if (changed.slug !== undefined || changed.domain !== undefined)
        assertAllowedSlug({ ...link, ...withoutAbsent(changed) }, reserved);
      return changed;
    };
    const updated = await store.update(organizationId, id, checked, actor, version).catch(throwQuotaProblem);
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
    list: createLinkList(store, cursors, queues, reserved.shortHost),
    matches,
    redirect,
    readCard,
    unlock,
    /** Returns whether a path is that of a link with a password. */
    async isProtected(place: Place): Promise<boolean> {
      return (await findByPath(place))?.link.hasPassword === true;
    },
    preview,
    /** Creates up to as many links as the plan allows. Each counts as a call. Results are in input order. */
    createMany: (caller: Caller & { countFurther: CountFurther }, input: unknown, limits: Limits) =>
      queues.work(caller.organizationId, () =>
        createLinksInBulk(input, limits, caller.countFurther, (link, index) =>
          create(callerAt(caller, index), link),
        ),
      ),
    /** Replaces the given fields; with `isMerge`, merges those that are objects with the current ones (RFC 7396). */
    async update(
      caller: Caller,
      id: string,
      input: unknown,
      precondition?: Precondition,
      isMerge = false,
    ): Promise<Link> {
      const given = validate(isMerge ? schemas.mergePatch : schemas.update, input);
      const version = await checkVersion(caller, id, precondition);
      const secret = await hashPassword(caller, given.password);
      const merged = (link: Link) => ({
        ...toFields(validate(schemas.update, { ...given, ...merge(link, given) })),
        ...secret,
      });
      const changes = isMerge ? merged : { ...toFields(given as LinkInput), ...secret };
      return change(caller, id, changes, version);
    },
    /** Creates the link with this external id, or replaces its fields; an omitted slug is kept. */
    async upsert(caller: Caller, externalId: string, input: unknown, precondition?: Precondition) {
      const valid = validate(withExternalId(schemas.create, externalId), input);
      const fields = { ...toFields(valid), ...(await hashPassword(caller, valid.password)) };
      return upsertLink(store, caller, externalId, fields, { reserved, precondition });
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
    /**
     * Moves the links of a domain to the server's own host, or deletes them.
     * @throws Problem 409 if they are more than 1,000, or some of them can't be moved
     */
    async leaveDomain(caller: Caller, domain: string, how: "move" | "delete"): Promise<void> {
      const { organizationId } = caller;
      const found = await store.listIds(organizationId, { domain }, CHANGED_MAX + 1);
      if (found === "timeout" || found.ids.length > CHANGED_MAX)
        throw inUse(
          `${domain} has more than ${CHANGED_MAX.toLocaleString("en")} links. Move or delete some first.`,
        );
      const apply = async (id: string) => {
        if (how === "delete") await remove(caller, id);
        else await change(caller, id, { domain: null });
        return { isChanged: true };
      };
      const results = await changeEach(found.ids, {
        apply,
        enqueue: (work) => queues.work(organizationId, work),
      });
      const kept = results.filter(({ error }) => error && error.status !== 404);
      if (kept.length === 0) return;
      const ids = kept.slice(0, NAMED_MAX).map(({ id }) => id);
      const slugs = (await store.findMany(organizationId, ids)).map(({ slug }) => slug);
      throw inUse(
        `${kept.length} of ${results.length} links keep the domain, such as ${slugs.join(", ")}: ${kept[0]?.error?.message}`,
      );
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
    /** Finds a link by its slug, on the server's own host before those of domains. */
    async findBySlug({ organizationId }: Caller, slug: string): Promise<Link | undefined> {
      const found = isSlug(slug) ? await store.list(organizationId, { slug }, 50) : [];
      const links = found === "timeout" ? [] : found;
      return links.find(({ domain }) => domain === null) ?? links[0];
    },
    ...createSuggestions(store, queues.reads),
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

type Keys = Record<string, unknown> | null | undefined;
type Objects = { metadata?: Keys; card?: Keys };

/** Returns the fields that are objects with the changes of a merge patch. */
function merge(link: Objects, { metadata, card }: Objects): Objects {
  return {
    ...(metadata && { metadata: mergeKeys(link.metadata, metadata) }),
    ...(card && { card: mergeKeys(link.card, card) }),
  };
}

function mergeKeys(current: Keys, patch: NonNullable<Keys>): Keys {
  return Object.fromEntries(Object.entries({ ...current, ...patch }).filter(([key]) => patch[key] !== null));
}

function callerAt({ linkId, ...caller }: Caller, index: number): Caller {
  return { ...caller, ...(linkId && { linkId: () => linkId(index) }) };
}

function inUse(detail: string): Problem {
  return new Problem(409, "domain_in_use", detail);
}

/** A field that is undefined stays as it is. */
function withoutAbsent(changes: LinkChanges): LinkChanges {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}

function gone(detail: string): Problem {
  return new Problem(410, "link_gone", detail);
}

function assertNotDisabled(link: ResolvedLink): ResolvedLink {
  if (link.isDisabled && !link.isDeleted) throw gone("The link has been disabled.");
  return link;
}

/** Returns where a visitor goes, without what the visitor adds. */
function chooseDestination({ url, rules }: ResolvedLink, visit: Visit, now: number): string {
  if (rules.length === 0) return toLocation(url);
  return toLocation(destinationOf(rules, { ...visit.source, ...visit }, now) ?? url);
}

/** @throws Problem 404 for a path that could leave that of the destination */
function addToDestination(destination: string, rest: string, { forwardQuery }: ResolvedLink, query: string) {
  const location = rest === "" ? destination : found(withForwardedPath(destination, rest), "link");
  return forwardQuery ? withForwardedQuery(location, query) : location;
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
