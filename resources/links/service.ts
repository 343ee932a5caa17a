import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import type { Precondition } from "../http/etag.ts";
import { type Cursors, DEFAULT_LIMIT, pageQuery } from "../http/pagination.ts";
import { found, notFound, Problem, retryLater } from "../http/problem.ts";
import { withQuotaProblems } from "../http/quota.ts";
import { hasAtMost, isText } from "../http/text.ts";
import { validate } from "../http/validate.ts";
import type { Limits } from "../plans.ts";
import { createTurns } from "../turns.ts";
import { type AnalyticsView, parseDateRange, toAnalyticsView } from "./analytics.ts";
import { createLinksInBulk } from "./bulk.ts";
import type { ClickSource } from "./click-source.ts";
import {
  assertEnabled,
  assertNoConflict,
  assertNotStale,
  preconditionFailed,
  tryCreateLink,
  upsertLink,
} from "./create.ts";
import { isReserved, type ReservedNames } from "./rules.ts";
import { linkSchemas, tag, toFields, withExternalId } from "./schema.ts";
import type { ClickedLink, Link, LinkFilter, LinkStore, ResolvedLink } from "./types.ts";

type LinksOptions = { store: LinkStore; cursors: Cursors } & ReservedNames;

const MAX_SEARCH_LENGTH = 255;
const SEARCH_TIMEOUT = "The search took too long. Try again, or search for a longer text.";
const SEARCH_RULE = { error: `must be 1 to ${MAX_SEARCH_LENGTH} characters` };

export const listQuery = pageQuery.extend({
  limit: pageQuery.shape.limit.describe(
    "The maximum number of links to return. A page of large links may have fewer.",
  ),
  cursor: pageQuery.shape.cursor.describe("The `next_cursor` of the previous page, with the same filter."),
  search: z
    .string()
    .refine((text) => text !== "" && hasAtMost(MAX_SEARCH_LENGTH, text), SEARCH_RULE)
    .refine(isText, { error: "must not contain NUL or unpaired surrogates" })
    .meta({ minLength: 1, maxLength: MAX_SEARCH_LENGTH })
    .optional()
    .describe(
      "Returns links whose URL, slug or title contains this text. Letters match in either case; accents count.",
    ),
  tag: tag.optional().describe("Returns links with this tag."),
  archived: z
    .boolean({ error: "must be true or false" })
    .optional()
    .describe("true: only archived links; false: only links that aren't archived."),
});

// A URL that the URL parser would return unchanged. Most destinations match, and needn't be parsed for each redirect.
const NORMALIZED_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

export type LinkService = ReturnType<typeof createLinkService>;

// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING_READS = 30;
// 100 links of the largest size take 5 MB, and more than 60 ms. Of the usual size, they fit.
const PAGE_LENGTH = 256 * 1024;
// Links have up to 60 KB, so the first ones of a long list tell how many to read next.
const FIRST_PART = 10;

/** Manages links for REST, MCP and the dashboard. Expected errors are thrown as `Problem`. */
export function createLinkService({ store, cursors, ...reserved }: LinksOptions) {
  const schemas = linkSchemas(reserved);
  // Reads may take seconds, on a thread of their own; other work takes milliseconds of this one.
  const turns = {
    reads: createTurns({ maxWaiting: MAX_WAITING_READS, pauses: false }),
    work: createTurns(),
  };
  const create = async (caller: Caller, input: unknown) =>
    assertNoConflict(await tryCreateLink(store, caller, validate(schemas.create, input)));

  async function get({ organizationId }: Caller, id: string): Promise<Link> {
    return found(await store.find(organizationId, id), "link");
  }

  /** A page ends where its JSON text would have more than `maxLength` characters. */
  async function list({ organizationId }: Caller, query: unknown, maxLength = PAGE_LENGTH) {
    const { limit, cursor, ...filter } = validate(listQuery, query);
    const binding = JSON.stringify([organizationId, filter satisfies LinkFilter]);
    const isSearch = Object.values(filter).some((value) => value !== undefined);
    const readPart = (count: number, before?: string) => {
      const read = () => store.list(organizationId, filter, count, before);
      return isSearch ? turns.reads(organizationId, read) : read();
    };

    async function readPage() {
      let before = cursor === undefined ? undefined : cursors.read(cursor, binding);
      const links: Link[] = [];
      let length = 0;
      let count = limit > DEFAULT_LIMIT ? FIRST_PART : limit;
      while (count > 0) {
        const part = await readPart(count + 1, before);
        if (part === "timeout") throw retryLater(503, "temporarily_unavailable", SEARCH_TIMEOUT, 1);
        for (const link of part.slice(0, count)) {
          if (length >= maxLength) break;
          links.push(link);
          length += JSON.stringify(link).length;
        }
        if (part.length === 0 || links.at(-1) === part.at(-1)) return { links, nextCursor: null };
        before = links.at(-1)?.id;
        const left = ((maxLength - length) * links.length) / length;
        count = Math.min(limit - links.length, Math.ceil(Math.max(0, left)));
      }
      return { links, nextCursor: cursors.write(before as string, binding) };
    }

    const isLarge = !isSearch && limit > DEFAULT_LIMIT;
    return isLarge ? turns.work(organizationId, readPage) : readPage();
  }

  async function checkVersion(caller: Caller, id: string, precondition?: Precondition) {
    if (!precondition) return undefined;
    const { version } = await get(caller, id);
    if (!precondition(version)) throw preconditionFailed();
    return version;
  }

  /** Resolves a slug to its redirect, and counts a click if its source is given (a HEAD request has none). */
  async function follow(slug: string, source?: ClickSource) {
    const link = found(await store.resolve(slug), "link");
    const clickedAt = Date.now();
    if (link.isDisabled && !link.isDeleted)
      throw new Problem(410, "link_gone", "The link has been disabled.");
    if (!isActive(link, clickedAt) || (source && !(await store.click(link, { ...source, clickedAt })))) {
      throw new Problem(410, "link_gone", "The link has expired or was removed by its owner.");
    }
    // Links keep the URL as it was sent, but a header holds only ASCII.
    const location = NORMALIZED_URL.test(link.url) ? link.url : new URL(link.url).href;
    return { status: link.redirectType, location };
  }

  return {
    schemas,
    create,
    get,
    list,
    follow,
    /** Creates up to as many links as the plan allows. Each counts as a call. Results are in input order. */
    createMany: (caller: Caller & { countFurther: CountFurther }, input: unknown, limits: Limits) =>
      turns.work(caller.organizationId, () =>
        createLinksInBulk(input, limits, caller.countFurther, (link, index) =>
          create(callerAt(caller, index), link),
        ),
      ),
    async update(caller: Caller, id: string, input: unknown, precondition?: Precondition): Promise<Link> {
      const changes = toFields(validate(schemas.update, input));
      const version = await checkVersion(caller, id, precondition);
      const updated = await withQuotaProblems(
        store.update(caller.organizationId, id, changes, caller.actor, version),
      );
      return assertNoConflict(assertNotStale(assertEnabled(found(updated, "link"))));
    },
    /** Creates the link with this external id, or replaces its fields; an omitted slug is kept. */
    async upsert(caller: Caller, externalId: string, input: unknown, precondition?: Precondition) {
      const fields = validate(withExternalId(schemas.create, externalId), input);
      return upsertLink(store, caller, externalId, fields, precondition);
    },
    async remove(caller: Caller, id: string, precondition?: Precondition): Promise<void> {
      const version = await checkVersion(caller, id, precondition);
      const removed = assertNotStale(await store.remove(caller.organizationId, id, caller.actor, version));
      if (!removed) throw notFound("link");
    },
    isReserved: (slug: string) => isReserved(slug, reserved),
    /** Returns the analytics of one link, or of all links if `id` is undefined. */
    async analytics(caller: Caller, id: string | undefined, query: unknown): Promise<AnalyticsView> {
      const { from, to } = parseDateRange(query);
      if (id !== undefined) await get(caller, id);
      const read = () => store.analytics(caller.organizationId, id, from, to);
      const analytics = await (id === undefined ? turns.reads(caller.organizationId, read) : read());
      return toAnalyticsView(analytics, from, to);
    },
    /** Returns the organization's links with the most clicks in a range of days, most first, without deleted ones. */
    async topLinks({ organizationId }: Caller, query: unknown, count: number): Promise<ClickedLink[]> {
      const { from, to } = parseDateRange(query);
      return turns.reads(organizationId, () => store.topLinks(organizationId, from, to, count));
    },
  };
}

function callerAt({ linkId, ...caller }: Caller, index: number): Caller {
  return { ...caller, ...(linkId && { linkId: () => linkId(index) }) };
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
