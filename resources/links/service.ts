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
  dayIn,
  isFiltered,
  parseAnalyticsQuery,
  toAnalyticsView,
  toDate,
} from "./analytics.ts";
import { createLinksInBulk } from "./bulk.ts";
import { LINKS_LENGTH, readBulkUpdate } from "./bulk-update.ts";
import { CHANGED_MAX, type ChangeResult, changeEach, readAction, selectionSchema } from "./change-many.ts";
import { updateOf } from "./changes.ts";
import { assertAllowedSlug, assertEnabled, assertNoConflict, tryCreateLink, upsertLink } from "./create.ts";
import { createLinkList, createMatches, createSuggestions } from "./list.ts";
import { isSlug, type ReservedNames } from "./rules.ts";
import { type LinkInput, linkSchemas, linkTag, toFields, withExternalId } from "./schema.ts";
import type { Link, LinkChanges, LinkPasswords, LinkStore } from "./types.ts";
import { createVisits } from "./visits.ts";

type LinksOptions = { store: LinkStore; cursors: Cursors; passwords: LinkPasswords } & ReservedNames;

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
    const fields = await fieldsOf(caller, validate(schemas.create, input));
    return assertNoConflict(await tryCreateLink(store, caller, fields, reserved));
  };

  /** Reads the range of a query, in the organization's time zone. */
  async function rangeOf({ organizationId }: Caller, query: unknown) {
    const counted = await store.countedDays(organizationId);
    return { ...parseAnalyticsQuery(query, counted), timeZone: counted.timeZone };
  }

  /**
   * Returns the analytics of one link, or of all links if `id` is undefined. With `topCount`, a page gets what it shows
   * beside them: the clicks of people in as many days before (`previous`), unless filters don't reach back to them, and
   * the links with the most. Clicks can be filtered from the day `earliest` on.
   */
  async function report(caller: Caller, id: string | undefined, query: unknown, topCount?: number) {
    const { organizationId } = caller;
    const { from, to, filter, first, timeZone } = await rangeOf(caller, query);
    if (id !== undefined) await get(caller, id);
    const before = from - (to - from) - 1;
    const isCompared = topCount !== undefined && before >= (isFiltered(filter) ? first : 0);
    const read = () =>
      Promise.all([
        store.analytics(organizationId, id, from, to, filter),
        isCompared ? store.countClicks(organizationId, id, before, from - 1, filter) : undefined,
        topCount ? store.topLinks(organizationId, from, to, topCount, filter) : [],
      ]);
    const [analytics, previous, topLinks] = await (id ? read() : queues.reads(organizationId, read));
    const found = toAnalyticsView(analytics, { from, to }, timeZone);
    return { found, previous, topLinks, earliest: toDate(first) };
  }

  /** Takes the time of a hash, so it comes after the validation, and before anything is locked. */
  async function hashPassword(
    { organizationId }: Caller,
    password: LinkInput["password"],
  ): Promise<LinkChanges> {
    if (password === undefined) return {};
    return { passwordHash: password && (await passwords.hash(password, organizationId)) };
  }

  async function fieldsOf(caller: Caller, input: LinkInput): Promise<LinkChanges> {
    return { ...toFields(input), ...(await hashPassword(caller, input.password)) };
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

  async function change(
    { organizationId, actor }: Caller,
    id: string,
    changes: LinkChanges | ((link: Link) => LinkChanges),
    version?: number,
  ): Promise<Link> {
    const checked = (link: Link) => {
      const changed = typeof changes === "function" ? changes(link) : changes;
      if (changed.slug !== undefined || changed.domain !== undefined)
        assertAllowedSlug({ ...link, ...changed }, reserved);
      return changed;
    };
    const updated = await store.update(organizationId, id, checked, actor, version).catch(throwQuotaProblem);
    return assertNoConflict(assertNotStale(assertEnabled(found(updated, "link")), "link"));
  }

  /** Makes changes that depend on the link. Nothing is stored if it stays as it is. */
  async function changeWith(caller: Caller, id: string, changesOf: (link: Link) => LinkInput) {
    let version = 0;
    const link = await change(caller, id, (current) => {
      version = current.version;
      return toFields(validate(schemas.update, changesOf(current)));
    });
    return { link, isChanged: link.version !== version };
  }

  async function remove(caller: Caller, id: string, precondition?: Precondition): Promise<void> {
    const version = await checkVersion(caller, id, precondition);
    const result = await store.remove(caller.organizationId, id, caller.actor, version);
    if (!assertNotStale(result, "link")) throw notFound("link");
  }

  /** Makes the same change to several links, or deletes them. Each counts as a request of its own. */
  function changeAll(
    caller: Caller,
    ids: string[],
    changes: "delete" | ((link: Link) => LinkInput),
    maxLength?: number,
  ): Promise<ChangeResult[]> {
    const apply = (id: string) =>
      changes === "delete"
        ? remove(caller, id).then(() => ({ isChanged: true }))
        : changeWith(caller, id, changes);
    const enqueue = <T>(work: () => Promise<T>) => queues.work(caller.organizationId, work);
    return changeEach(ids, { apply, enqueue, ...(maxLength && { maxLength }) });
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
    ...createVisits(store, passwords, reserved),
    /** Creates up to as many links as the plan allows. Each counts as a call. Results are in input order. */
    async createMany(caller: Caller & { countFurther: CountFurther }, input: unknown, limits: Limits) {
      const { organizationId, countFurther } = caller;
      // Read once: links that wait for it apart may be created in another order.
      const { defaultDomain = await store.findDefaultDomain(organizationId) } = caller;
      return queues.work(organizationId, () =>
        createLinksInBulk(input, limits, countFurther, (link, index) =>
          create({ ...callerAt(caller, index), defaultDomain }, link),
        ),
      );
    },
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
      const fields = await fieldsOf(caller, validate(withExternalId(schemas.create, externalId), input));
      return upsertLink(store, caller, externalId, fields, { reserved, precondition });
    },
    remove,
    /** Changes or deletes up to 1,000 selected links, each as a request of its own would. */
    async changeMany(caller: Caller, input: unknown): Promise<ChangeResult[]> {
      const { ids, changes } = readAction(input);
      return changeAll(caller, ids, changes === "delete" ? changes : (link) => updateOf(link, changes));
    },
    /**
     * Moves the links of a domain to the server's own host, or deletes them.
     * @throws Problem 409 if they are more than 1,000, or some of them can't be moved
     */
    async leaveDomain(caller: Caller, domain: string, how: "move" | "delete"): Promise<void> {
      const { organizationId } = caller;
      const found = await store.listIds(organizationId, { domain }, CHANGED_MAX + 1);
      const max = CHANGED_MAX.toLocaleString("en");
      if (found === "timeout" || found.ids.length > CHANGED_MAX)
        throw inUse(`${domain} has more than ${max} links. Move or delete some first.`);
      const move = () => ({ domain: null });
      const results = await changeAll(caller, found.ids, how === "delete" ? how : move);
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
      return changeAll(caller, ids, (link) => updateOf(link, changes), maxLength);
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
    rangeOf,
    report,
    async analytics(caller: Caller, id: string | undefined, query: unknown): Promise<AnalyticsView> {
      return (await report(caller, id, query)).found;
    },
    /** Resolves to how many clicks of a link came with its import, so no analytics have them. */
    async importedClicks({ organizationId }: Caller, { id, clicks }: Link): Promise<number> {
      // Where a day begins before it does in UTC, today can be tomorrow.
      const last = dayIn("UTC") + 1;
      return clicks - (await store.countClicks(organizationId, id, 0, last));
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
