import { z } from "zod";
import type { Caller } from "../access/actor.ts";
import type { CountFurther } from "../access/bearer.ts";
import type { Cursors } from "../http/cursor.ts";
import type { Precondition } from "../http/precondition.ts";
import { notFound } from "../http/problem.ts";
import { withQuotaProblems } from "../http/quota.ts";
import { hasAtMost, isText } from "../http/text.ts";
import { validate } from "../http/validate.ts";
import type { Limits } from "../plans.ts";
import { type AnalyticsView, parseDateRange, toAnalyticsView } from "./analytics.ts";
import { type BulkResult, createLinksInBulk } from "./bulk.ts";
import type { ClickSource } from "./click-source.ts";
import { tryCreateLink } from "./create.ts";
import { assertEnabled, assertNoConflict, assertNotStale, linkGone, preconditionFailed } from "./problems.ts";
import { createReadQueue, type ReadQueue, searchTimedOut } from "./read-queue.ts";
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
  list(caller: Caller, query: unknown): Promise<LinkPage>;
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

const LIMIT_RULE = { error: "must be a whole number from 1 to 100" };
const MAX_SEARCH_LENGTH = 255;
const SEARCH_RULE = { error: `must be 1 to ${MAX_SEARCH_LENGTH} characters` };

/** The query parameters of the list of links. */
export const listQuery = z.strictObject({
  limit: z
    .int(LIMIT_RULE)
    .min(1, LIMIT_RULE)
    .max(100, LIMIT_RULE)
    .default(25)
    .describe("The maximum number of links to return."),
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
  const readInTurn = createReadQueue();
  const create = async (caller: Caller, input: unknown) =>
    assertNoConflict(await tryCreateLink(store, caller, validate(schemas.create, input)));
  return {
    schemas,
    create,
    createMany: (caller, input, limits) =>
      createLinksInBulk(input, limits, caller.countFurther, (link, index) =>
        create(callerAt(caller, index), link),
      ),
    get: (caller, id) => getLink(store, caller, id),
    list: (caller, query) => listLinks(store, cursors, readInTurn, caller, query),
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
      const analytics = await (id === undefined ? readInTurn(caller.organizationId, read) : read());
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

async function listLinks(
  store: LinkStore,
  cursors: Cursors,
  readInTurn: ReadQueue,
  { organizationId }: Caller,
  query: unknown,
): Promise<LinkPage> {
  const { limit, cursor, ...filter } = validate(listQuery, query);
  const binding = JSON.stringify([organizationId, filter satisfies LinkFilter]);
  const before = cursor === undefined ? undefined : cursors.read(cursor, binding);
  const read = () => store.list(organizationId, filter, limit + 1, before);
  const isSearch = Object.values(filter).some((value) => value !== undefined);
  const found = await (isSearch ? readInTurn(organizationId, read) : read());
  if (found === "timeout") throw searchTimedOut();
  const links = found.slice(0, limit);
  const last = links.at(-1);
  return { links, nextCursor: found.length > limit && last ? cursors.write(last.id, binding) : null };
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
