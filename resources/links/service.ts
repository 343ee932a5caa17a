import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import type { Cursors } from "../http/cursor.ts";
import type { Precondition } from "../http/precondition.ts";
import { notFound, Problem } from "../http/problem.ts";
import { withQuotaProblems } from "../http/quota.ts";
import { hasAtMost, isText } from "../http/text.ts";
import { validate } from "../http/validate.ts";
import type { Limits } from "../plans.ts";
import { createTurns, type InTurn } from "../turns.ts";
import { type AnalyticsView, parseDateRange, toAnalyticsView } from "./analytics.ts";
import { type BulkResult, createLinksInBulk } from "./bulk.ts";
import type { ClickSource } from "./click-source.ts";
import { tryCreateLink } from "./create.ts";
import { assertEnabled, assertNoConflict, assertNotStale, linkGone, preconditionFailed } from "./problems.ts";
import { isReserved, type ReservedNames } from "./rules.ts";
import { linkSchemas, tag, toFields, withExternalId } from "./schema.ts";
import type { Link, LinkFilter, LinkStore, ResolvedLink } from "./types.ts";
import { type UpsertResult, upsertLink } from "./upsert.ts";

/** The business logic of links, shared by REST, MCP and the dashboard. Expected errors are `Problem`s. */
export type LinkService = {
  schemas: ReturnType<typeof linkSchemas>;
  create(caller: Caller, input: unknown): Promise<Link>;
  /** Creates up to as many links as the plan allows. Each counts as a call. Results are in input order. */
  createMany(
    caller: Caller & { countFurther: CountFurther },
    input: unknown,
    limits: Limits,
  ): Promise<BulkResult[]>;
  get(caller: Caller, id: string): Promise<Link>;
  /** Lists links as `listQuery` says; the page ends earlier where its JSON text would have more than `maxLength` characters. */
  list(caller: Caller, query: unknown, maxLength?: number): Promise<LinkPage>;
  update(caller: Caller, id: string, input: unknown, precondition?: Precondition): Promise<Link>;
  /** Creates the link with this external id, or replaces its fields; an omitted slug is kept. */
  upsert(
    caller: Caller,
    externalId: string,
    input: unknown,
    precondition?: Precondition,
  ): Promise<UpsertResult>;
  remove(caller: Caller, id: string, precondition?: Precondition): Promise<void>;
  /** Returns whether a slug is reserved for the service's own URLs. */
  isReserved(slug: string): boolean;
  /** Resolves a slug to its redirect, and counts a click if its source is given (a HEAD request has none). */
  follow(slug: string, source?: ClickSource): Promise<{ status: number; location: string }>;
  /** Returns the analytics of one link, or of all links if `id` is undefined. */
  analytics(caller: Caller, id: string | undefined, query: unknown): Promise<AnalyticsView>;
};

type LinkPage = { links: Link[]; nextCursor: string | null };
type LinksOptions = { store: LinkStore; cursors: Cursors } & ReservedNames;

const DEFAULT_LIMIT = 25;
const LIMIT_RULE = { error: "must be a whole number from 1 to 100" };
const MAX_SEARCH_LENGTH = 255;
const SEARCH_RULE = { error: `must be 1 to ${MAX_SEARCH_LENGTH} characters` };

/** The query parameters of the list of links. */
export const listQuery = z.strictObject({
  limit: z
    .int(LIMIT_RULE)
    .min(1, LIMIT_RULE)
    .max(100, LIMIT_RULE)
    .default(DEFAULT_LIMIT)
    .describe("The maximum number of links to return. A page of large links may have fewer."),
  cursor: z.string().optional().describe("The `next_cursor` of the previous page, with the same filter."),
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

/** Creates the link service of a store. */
export function createLinkService({ store, cursors, ...reserved }: LinksOptions): LinkService {
  const schemas = linkSchemas(reserved);
  const turns: Turns = {
    reads: createTurns({ maxWaiting: MAX_WAITING_READS, pauses: false }),
    work: createTurns(),
  };
  const create = async (caller: Caller, input: unknown) =>
    assertNoConflict(await tryCreateLink(store, caller, validate(schemas.create, input)));
  return {
    schemas,
    create,
    createMany: (caller, input, limits) =>
      turns.work(caller.organizationId, () =>
        createLinksInBulk(input, limits, caller.countFurther, (link, index) =>
          create(callerAt(caller, index), link),
        ),
      ),
    get: (caller, id) => getLink(store, caller, id),
    list: (caller, query, maxLength = PAGE_LENGTH) =>
      listLinks(store, cursors, turns, caller, query, maxLength),
    async update(caller, id, input, precondition) {
      const changes = toFields(validate(schemas.update, input));
      const version = await checkVersion(store, caller, id, precondition);
      const updated = await withQuotaProblems(
        store.update(caller.organizationId, id, changes, caller.actor, version),
      );
      if (!updated) throw notFound("link");
      return assertNoConflict(assertNotStale(assertEnabled(updated)));
    },
    async upsert(caller, externalId, input, precondition) {
      const fields = validate(withExternalId(schemas.create, externalId), input);
      return upsertLink(store, caller, externalId, fields, precondition);
    },
    async remove(caller, id, precondition) {
      const version = await checkVersion(store, caller, id, precondition);
      const removed = assertNotStale(await store.remove(caller.organizationId, id, caller.actor, version));
      if (!removed) throw notFound("link");
    },
    isReserved: (slug) => isReserved(slug, reserved),
    follow: (slug, source) => followSlug(store, slug, source),
    async analytics(caller, id, query) {
      const { from, to } = parseDateRange(query);
      if (id !== undefined) await getLink(store, caller, id);
      const read = () => store.analytics(caller.organizationId, id, from, to);
      const analytics = await (id === undefined ? turns.reads(caller.organizationId, read) : read());
      return toAnalyticsView(analytics, from, to);
    },
  };
}

/** Returns the caller of one link of a bulk request, whose id a retry finds again. */
function callerAt({ linkId, ...caller }: Caller, index: number): Caller {
  return { ...caller, ...(linkId && { linkId: () => linkId(index) }) };
}

async function getLink(store: LinkStore, { organizationId }: Caller, id: string): Promise<Link> {
  const link = await store.find(organizationId, id);
  if (!link) throw notFound("link");
  return link;
}

/** `reads` may take seconds, on a thread of their own; `work` takes milliseconds of this one. */
type Turns = { reads: InTurn; work: InTurn };

// Enough for an app that searches in parallel. Each read may take seconds in a large organization.
const MAX_WAITING_READS = 30;
// 100 links of the largest size take 5 MB, and more than 60 ms. Of the usual size, they fit.
const PAGE_LENGTH = 256 * 1024;
// Links have up to 60 KB, so the first ones of a long list tell how many to read next.
const FIRST_PART = 10;

async function listLinks(
  store: LinkStore,
  cursors: Cursors,
  turns: Turns,
  { organizationId }: Caller,
  query: unknown,
  maxLength: number,
): Promise<LinkPage> {
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
      const found = await readPart(count + 1, before);
      if (found === "timeout") throw searchTimedOut();
      for (const link of found.slice(0, count)) {
        if (length >= maxLength) break;
        links.push(link);
        length += JSON.stringify(link).length;
      }
      if (found.length === 0 || links.at(-1) === found.at(-1)) return { links, nextCursor: null };
      before = links.at(-1)?.id;
      const left = ((maxLength - length) * links.length) / length;
      count = Math.min(limit - links.length, Math.ceil(Math.max(0, left)));
    }
    return { links, nextCursor: cursors.write(before as string, binding) };
  }

  const isLarge = !isSearch && limit > DEFAULT_LIMIT;
  return isLarge ? turns.work(organizationId, readPage) : readPage();
}

/** Returns the error of a search that took too long. */
function searchTimedOut(): Problem {
  const detail = "The search took too long. Try again, or search for a longer text.";
  return new Problem(503, "temporarily_unavailable", detail, { headers: { "Retry-After": "1" } });
}

/** Returns the version that a conditional write must start from; undefined without a precondition. */
async function checkVersion(store: LinkStore, caller: Caller, id: string, precondition?: Precondition) {
  if (!precondition) return undefined;
  const { version } = await getLink(store, caller, id);
  if (!precondition(version)) throw preconditionFailed();
  return version;
}

async function followSlug(store: LinkStore, slug: string, source?: ClickSource) {
  const link = await store.resolve(slug);
  if (!link) throw notFound("link");
  const clickedAt = Date.now();
  if (link.isDisabled && !link.isDeleted) throw linkGone("The link has been disabled.");
  if (!isActive(link, clickedAt) || (source && !(await store.click(link, { ...source, clickedAt })))) {
    throw linkGone("The link has expired or was removed by its owner.");
  }
  // Links keep the URL as it was sent, but a header holds only ASCII.
  const location = NORMALIZED_URL.test(link.url) ? link.url : new URL(link.url).href;
  return { status: link.redirectType, location };
}

function isActive({ isDeleted, archived, expiresAt, clicks, maxClicks }: ResolvedLink, now: number): boolean {
  return !isDeleted && !archived && (expiresAt ?? Infinity) > now && clicks < (maxClicks ?? Infinity);
}
