import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import { type Cursors, DEFAULT_LIMIT, pageQuery } from "../http/pagination.ts";
import { Problem, retryLater } from "../http/problem.ts";
import { hasAtMost, isText, isUnbroken } from "../http/text.ts";
import { invalidField, validate } from "../http/validate.ts";
import type { Enqueue } from "../work-queue.ts";
import { CHANGED_MAX } from "./change-many.ts";
import { isSlug, toHost, URL_MAX } from "./rules.ts";
import { anyTime, externalId, host, slug, tag, textOf } from "./schema.ts";
import type { Boundary, FoundIds, Link, LinkFilter, LinkSort, LinkStore } from "./types.ts";

// Few organizations use a tag that none of these has, and they are read in milliseconds.
const LINKS_WITH_SUGGESTED_TAGS = 1000;
const SUGGESTED_TAGS = 100;
const MAX_SEARCH_LENGTH = 255;
const URL_RULE = `must be 1 to ${URL_MAX} characters without spaces or control characters`;
const SEARCH_TIMEOUT = "The search took too long. Try again, or search for a longer text.";
const SORT_TIMEOUT = "Sorting your links took too long. Try again, or sort by created_at.";
const SEARCH_RULE = { error: `must be 1 to ${MAX_SEARCH_LENGTH} characters` };

export const listQuery = pageQuery.extend({
  limit: pageQuery.shape.limit.describe("The maximum number of links. A page of large links may have fewer."),
  cursor: pageQuery.shape.cursor.describe(
    "The previous page's `next_cursor`, with the same filter and sort.",
  ),
  sort: z
    .enum(["created_at", "-created_at", "clicks", "-clicks", "last_clicked_at", "-last_clicked_at"])
    .default("-created_at")
    .describe(
      "The field to sort by; `-` is for descending order. Links without clicks have the lowest values.",
    ),
  search: z
    .string()
    .refine((text) => text !== "" && hasAtMost(MAX_SEARCH_LENGTH, text), SEARCH_RULE)
    .refine(isText, { error: "must not contain NUL or unpaired surrogates" })
    .meta({ minLength: 1, maxLength: MAX_SEARCH_LENGTH })
    .optional()
    .describe("Returns links with this text in their URL, slug or title. Ignores case, but not accents."),
  tag: tag.optional().describe("Returns links with this tag."),
  archived: z.boolean().optional().describe("true: only archived links; false: only the others."),
  domain: host.optional().describe("Returns links with this host in their short URL."),
  slug: slug.optional().describe("Returns links with this slug, one per domain at most."),
  url: textOf(1, URL_MAX, URL_RULE, isUnbroken)
    .optional()
    .describe("Returns links with exactly this URL, as it was sent."),
  external_id: externalId.optional().describe("Returns the link with this external ID."),
  created_after: anyTime.optional().describe("Returns links created at this time or later."),
  created_before: anyTime.optional().describe("Returns links created before this time."),
});

/** A page, with the cursors of the pages beside it, and how many links the pages before it had when they were read. */
export type LinkPage = {
  links: Link[];
  previousCursor: string | null;
  nextCursor: string | null;
  offset: number;
};

// 100 links of the largest size take 5 MB, and more than 60 ms. Of the usual size, they fit.
const PAGE_LENGTH = 256 * 1024;
// Links have up to 60 KB, so the first ones of a long list tell how many to read next.
const FIRST_PART = 10;

/** Creates the list of links. Searches and long pages wait for their turns. */
export function createLinkList(
  store: Pick<LinkStore, "list">,
  cursors: Cursors,
  queues: { reads: Enqueue; work: Enqueue },
  shortHost: string,
) {
  /** A page ends where its JSON text would have more than `maxLength` characters. */
  return async function list(caller: Caller, query: unknown, maxLength = PAGE_LENGTH): Promise<LinkPage> {
    const { organizationId } = caller;
    const { cursor, ...listed } = validate(listQuery, query);
    const { limit, sort: order, ...given } = listed;
    const binding = JSON.stringify([organizationId, order, given]);
    const sort = order.replace("-", "") as LinkSort;
    const filter = toFilter(given, shortHost);
    const cursorAt = (boundary: Boundary | undefined, isBackward: boolean, above: number) => {
      if (!boundary) return null;
      return cursors.write(JSON.stringify([boundary.id, boundary.value, isBackward, above]), binding);
    };
    const { start, isBackward, above } = readPosition(
      cursor === undefined ? undefined : cursors.read(cursor, binding),
    );
    const isAscending = order.startsWith("-") === isBackward;
    const isSearch = !isLookup(filter) && (sort !== "created_at" || isFiltered(filter));
    const readPart = (count: number, from?: Boundary) => {
      const read = () => store.list(organizationId, filter, count, { sort, from, isAscending });
      return isSearch ? queues.reads(organizationId, read) : read();
    };

    /** Resolves to links in the direction of the cursor, and to the boundary behind them if more follow. */
    async function readLinks(): Promise<[links: Link[], end: Boundary | undefined]> {
      const links: Link[] = [];
      let from = start;
      let length = 0;
      let count = limit > DEFAULT_LIMIT ? FIRST_PART : limit;
      while (count > 0) {
        const part = await readPart(count + 1, from);
        if (part === "timeout") throw timeout(sort);
        let taken = 0;
        for (const link of part.slice(0, count)) {
          if (length >= maxLength) break;
          links.push(link);
          length += JSON.stringify(link).length;
          taken++;
        }
        if (taken === part.length) return [links, undefined];
        // Upward, the boundary is below the first link that isn't on the page.
        from = boundaryBelow(part[isAscending ? taken : taken - 1] as Link, sort);
        const left = ((maxLength - length) * links.length) / length;
        count = Math.min(limit - links.length, Math.ceil(Math.max(0, left)));
      }
      return [links, from];
    }

    const isLarge = !isSearch && limit > DEFAULT_LIMIT;
    const [links, end] = await (isLarge ? queues.work(organizationId, readLinks) : readLinks());
    if (!isBackward)
      return {
        links,
        previousCursor: cursorAt(start, true, above),
        nextCursor: cursorAt(end, false, above + links.length),
        offset: above,
      };
    // The links of the previous page were deleted, so the next page is the first.
    if (links.length === 0) return list(caller, listed, maxLength);
    // Links above may have been created or deleted since they were counted.
    const offset = end ? Math.max(1, above - links.length) : 0;
    return {
      links: links.reverse(),
      previousCursor: cursorAt(end, true, offset),
      nextCursor: cursorAt(start, false, offset + links.length),
      offset,
    };
  };
}

type Given = Omit<z.output<typeof listQuery>, "limit" | "cursor" | "sort">;

function toFilter(
  { external_id, created_after, created_before, domain, ...same }: Given,
  shortHost: string,
): LinkFilter {
  const host = domain === undefined ? undefined : toHost(domain);
  return {
    ...same,
    domain: host === shortHost ? null : host,
    externalId: external_id,
    createdAfter: created_after === undefined ? undefined : Date.parse(created_after),
    createdBefore: created_before === undefined ? undefined : Date.parse(created_before),
  };
}

const isFiltered = (filter: LinkFilter) => Object.values(filter).some((value) => value !== undefined);

/** Returns whether an index finds the links of a page, so they needn't be searched for. */
function isLookup({ slug, externalId, url, ...others }: LinkFilter): boolean {
  return slug !== undefined || externalId !== undefined || (url !== undefined && !isFiltered(others));
}

/** Reads a cursor: a boundary, the direction from it, and how many links the pages before it had. */
function readPosition(position: string | undefined) {
  if (position === undefined) return { start: undefined, isBackward: false, above: 0 };
  const [id, value, isBackward, above = 0] = JSON.parse(position) as [string, number, boolean, number?];
  return { start: { id, value }, isBackward, above };
}

function boundaryBelow({ id, clicks, lastClickedAt }: Link, sort: LinkSort): Boundary {
  const values: Record<LinkSort, number> = { created_at: 0, clicks, last_clicked_at: lastClickedAt ?? 0 };
  return { id, value: values[sort] };
}

function timeout(sort: LinkSort): Problem {
  const detail = sort === "created_at" ? SEARCH_TIMEOUT : SORT_TIMEOUT;
  return retryLater(503, "temporarily_unavailable", detail, 1);
}

// The count is beside a page of 25 links, which are often found among the newest ones. Without a limit, a rare text would
// be searched for in all links. The search compares as many in one to three pieces, each of some milliseconds.
const COMPARED_MAX = 10_000;

/** Which links are in a list, without their order and pages. */
export const linkFilter = listQuery.omit({ limit: true, cursor: true, sort: true });

/** How many links match a filter, or at least match. */
export type LinkCount = { links: number; isExact: boolean };

/** Creates what looks at all links that match a filter instead of a page of them. Searches wait for their turns. */
export function createMatches(store: Pick<LinkStore, "listIds">, reads: Enqueue, shortHost: string) {
  async function find(
    caller: Caller,
    query: unknown,
    limit: number,
    { createdBefore, maxCompared }: { createdBefore?: number; maxCompared?: number } = {},
  ): Promise<FoundIds> {
    const given = toFilter(validate(linkFilter, query), shortHost);
    const filter = { ...given, createdBefore: createdBefore ?? given.createdBefore };
    const { organizationId } = caller;
    const listIds = () => store.listIds(organizationId, filter, limit, maxCompared);
    const found = await reads(organizationId, listIds);
    if (found === "timeout") throw timeout("created_at");
    return found;
  }

  return {
    /** Counts up to 1,000 links that match, which one change may have, among the 10,000 or so newest ones. */
    async count(caller: Caller, query: unknown): Promise<LinkCount> {
      const scope = { maxCompared: COMPARED_MAX };
      const { ids, isComplete } = await find(caller, query, CHANGED_MAX + 1, scope);
      return { links: Math.min(ids.length, CHANGED_MAX), isExact: isComplete && ids.length <= CHANGED_MAX };
    },

    /**
     * Returns the ids of all links that match and existed at a time, in epoch milliseconds, newest first.
     * @throws Problem 422 `invalid_all` for more than 1,000
     */
    async findAll(caller: Caller, query: unknown, createdUntil: number): Promise<string[]> {
      const { ids } = await find(caller, query, CHANGED_MAX + 1, { createdBefore: createdUntil + 1 });
      if (ids.length > CHANGED_MAX)
        throw invalidField("all", `must match at most ${CHANGED_MAX.toLocaleString("en")} links`);
      return ids;
    },

    /** Returns the ids of all links that match, newest first. @throws Problem 409 unless they are as many as expected */
    async findExpected(caller: Caller, query: unknown, expected: number): Promise<string[]> {
      const { ids } = await find(caller, query, CHANGED_MAX + 1);
      if (ids.length !== expected) throw countMismatch(ids.length, expected);
      return ids;
    },
  };
}

function countMismatch(found: number, expected: number): Problem {
  const max = CHANGED_MAX.toLocaleString("en");
  const count = found > CHANGED_MAX ? `more than ${max}` : found.toLocaleString("en");
  const detail = `Links that match the filter: ${count}. Expected: ${expected.toLocaleString("en")}. No link was changed.`;
  return new Problem(409, "count_mismatch", detail);
}

/** What a person or a model is offered while typing, or can choose from. */
export function createSuggestions(store: LinkStore, enqueue: Enqueue) {
  return {
    listHosts: ({ organizationId }: Caller): Promise<string[]> => store.listHosts(organizationId),
    /** Suggests slugs with a prefix, those of the newest links first. Resolves to none if the search takes too long. */
    async suggestSlugs({ organizationId }: Caller, prefix: string, count: number): Promise<string[]> {
      if (prefix !== "" && !isSlug(prefix.replace(/\/$/, ""))) return [];
      const filter = prefix === "" ? {} : { slugPrefix: prefix };
      const found = await enqueue(organizationId, () => store.list(organizationId, filter, count));
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
  };
}
