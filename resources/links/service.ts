import { z } from "zod";
import type { Cursors } from "../cursor.ts";
import type { By } from "../events.ts";
import type { Limits } from "../plans.ts";
import type { Destination, Link, LinkFields, LinkFilter, LinkStore, Taken } from "../ports.ts";
import { notFound, Problem } from "../problem.ts";
import { isText } from "../text.ts";
import { validate } from "../validate.ts";
import { type AnalyticsView, daysOf, toAnalyticsView } from "./analytics.ts";
import { createMany, type Outcome } from "./bulk.ts";
import { isReserved, type Own, randomSlug } from "./rules.ts";
import { type LinkInput, linkSchemas, tag, toFields, withExternalId } from "./schema.ts";
import type { Visit } from "./visit.ts";

/** Who acts, and for which organization. */
export type Actor = {
  organizationId: string;
  by: By;
  /** The ids of links to be made, where an earlier attempt at the same may have made them already. */
  linkId?: (index: number) => string;
};

/** Accepts or refuses the version that a change starts from (RFC 9110 §13.1.1). */
export type Precondition = (version: number) => boolean;

/** The one core of links; REST, MCP and pages are its faces. Everything refused is a `Problem`. */
export type Links = {
  schemas: ReturnType<typeof linkSchemas>;
  create(actor: Actor, input: unknown): Promise<Link>;
  /** Makes as many as the plan allows at once; what became of each, in order. */
  createMany(actor: Actor, input: unknown, limits: Limits): Promise<Outcome[]>;
  get(actor: Actor, id: string): Promise<Link>;
  list(actor: Actor, query: unknown): Promise<{ links: Link[]; nextCursor: string | null }>;
  update(actor: Actor, id: string, input: unknown, precondition?: Precondition): Promise<Link>;
  /** Makes the link with this external id, or gives the one that has it these fields; a slug that is not named stays. */
  upsert(
    actor: Actor,
    externalId: string,
    input: unknown,
    precondition?: Precondition,
  ): Promise<{ link: Link; isNew: boolean }>;
  remove(actor: Actor, id: string, precondition?: Precondition): Promise<void>;
  /** Whether a word belongs to the service itself. */
  isReserved(slug: string): boolean;
  /** Where a slug leads now; counts the click unless it is only a look, which no visit is. */
  follow(slug: string, visit?: Visit): Promise<{ status: number; location: string }>;
  /** Where the clicks of a link came from, or those of all links. */
  analytics(actor: Actor, id: string | undefined, query: unknown): Promise<AnalyticsView>;
};

type LinksOptions = { store: LinkStore; cursors: Cursors } & Own;

// Random slugs that are all taken mean that something else is wrong.
const ATTEMPTS = 5;
// Each lost race is one that another request won: a link that comes and goes this often is one that people fight over.
const RACES = 25;
const RETRY_AFTER_S = 1;

/** What a link is unless the caller says otherwise. */
export const LINK_DEFAULTS: Omit<LinkFields, "url" | "slug"> = {
  title: null,
  tags: [],
  externalId: null,
  metadata: {},
  archived: false,
  expiresAt: null,
  maxClicks: null,
  redirectType: 302,
};

const WHOLE = { error: "This must be a whole number from 1 to 100." };
const SEARCH_MAX = 255;
const SEARCH_RULE = { error: `This must have 1 to ${SEARCH_MAX} characters.` };

/** What a list is asked for. */
export const listQuery = z.strictObject({
  limit: z.int(WHOLE).min(1, WHOLE).max(100, WHOLE).default(25).describe("How many at most."),
  cursor: z.string().optional().describe("The next_cursor of the page before, with the same filter."),
  search: z
    .string()
    .min(1, SEARCH_RULE)
    .max(SEARCH_MAX, SEARCH_RULE)
    .refine(isText, { error: "This has characters that no text has." })
    .optional()
    .describe("Text in the url, the slug or the title; ASCII letters in either case."),
  tag: tag.optional().describe("Links with this tag."),
  archived: z
    .boolean({ error: "This must be true or false." })
    .optional()
    .describe("true: archived ones alone; false: the others."),
});

// An address that the URL parser would leave as it is; most destinations are such, and are not parsed again.
const PLAIN_URL = /^https?:\/\/[a-z0-9.-]+\/[A-Za-z0-9\-_~!$&()*+,;=:@%/?.]*$/;

/** Makes the core over a store. */
export function createLinks({ store, cursors, ...own }: LinksOptions): Links {
  const schemas = linkSchemas(own);

  async function get({ organizationId }: Actor, id: string): Promise<Link> {
    const link = await store.find(organizationId, id);
    if (!link) throw notFound("link");
    return link;
  }

  /** The version that a change has to start from, if the caller cares. */
  async function versionFor(actor: Actor, id: string, precondition?: Precondition) {
    if (!precondition) return undefined;
    const { version } = await get(actor, id);
    if (!precondition(version)) throw changedMeanwhile();
    return version;
  }

  async function make({ organizationId, by, linkId }: Actor, input: LinkInput): Promise<Link | Taken> {
    const fields = { ...LINK_DEFAULTS, ...toFields(input) } as LinkFields;
    const id = linkId?.(0);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const made = await store.create(
        organizationId,
        by,
        { ...fields, slug: fields.slug ?? randomSlug() },
        id,
      );
      if (!("taken" in made)) return made;
      // What an earlier attempt has made stands in its own way.
      const existing = id && (await store.find(organizationId, id));
      if (existing) return existing;
      if (fields.slug || made.taken !== "slug") return made;
    }
    throw new Error("no free slug was found");
  }

  async function create(actor: Actor, input: unknown): Promise<Link> {
    return orTaken(await make(actor, validate(schemas.create, input)));
  }

  return {
    schemas,
    get,

    create,

    createMany: (actor, input, limits) =>
      createMany(input, limits, (link, index) => {
        const { linkId } = actor;
        return create({ ...actor, ...(linkId && { linkId: () => linkId(index) }) }, link);
      }),

    async list({ organizationId }, query) {
      const { limit, cursor, ...filter } = validate(listQuery, query);
      const bound = JSON.stringify([organizationId, filter satisfies LinkFilter]);
      const before = cursor === undefined ? undefined : cursors.read(cursor, bound);
      const links = await store.list(organizationId, filter, limit + 1, before);
      const page = links.slice(0, limit);
      const last = page.at(-1);
      return { links: page, nextCursor: links.length > limit && last ? cursors.write(last.id, bound) : null };
    },

    async update(actor, id, input, precondition) {
      const changes = toFields(validate(schemas.update, input));
      const version = await versionFor(actor, id, precondition);
      const written = await store.update(actor.organizationId, id, changes, actor.by, version);
      if (!written) throw notFound("link");
      return orTaken(orStale(written));
    },

    async upsert(actor, externalId, input, precondition) {
      const { organizationId, by } = actor;
      const fields = validate(withExternalId(schemas.create, externalId), input);
      for (let attempt = 0; attempt < RACES; attempt++) {
        const link = await store.findByExternalId(organizationId, externalId);
        // RFC 9110 §13.1.1: what is not there matches no tag, not even "*".
        if (precondition && !(link && precondition(link.version))) throw changedMeanwhile();
        if (!link) {
          const made = await make(actor, fields);
          // Whoever made it meanwhile has its slug as well, and each database names another one of the two.
          const isMade = "taken" in made && (await store.findByExternalId(organizationId, externalId));
          if (isMade || ("taken" in made && made.taken === "external_id")) continue;
          return { link: orTaken(made), isNew: true };
        }
        const { archived, ...whole } = { ...LINK_DEFAULTS, ...toFields(fields) };
        const version = precondition && link.version;
        const written = await store.update(organizationId, link.id, whole, by, version);
        if (written && written !== "stale") return { link: orTaken(written), isNew: false };
      }
      throw restless();
    },

    async remove(actor, id, precondition) {
      const version = await versionFor(actor, id, precondition);
      if (!orStale(await store.remove(actor.organizationId, id, actor.by, version))) throw notFound("link");
    },

    isReserved: (slug) => isReserved(slug, own),

    async follow(slug, visit) {
      const link = await store.resolve(slug);
      if (!link) throw notFound("link");
      const now = Date.now();
      if (isOver(link, now) || (visit && !(await store.click(link, { ...visit, at: now })))) {
        throw new Problem(410, "link_gone", "This link does not lead anywhere any more.");
      }
      // Stored as it was sent; a header holds ASCII only.
      return {
        status: link.redirectType,
        location: PLAIN_URL.test(link.url) ? link.url : new URL(link.url).href,
      };
    },

    async analytics(actor, id, query) {
      const { from, to } = daysOf(query);
      if (id !== undefined) await get(actor, id);
      return toAnalyticsView(await store.analytics(actor.organizationId, id, from, to), from, to);
    },
  };
}

function isOver({ gone, archived, expiresAt, clicks, maxClicks }: Destination, now: number): boolean {
  return gone || archived || (expiresAt ?? Infinity) <= now || clicks >= (maxClicks ?? Infinity);
}

function orTaken(made: Link | Taken): Link {
  if (!("taken" in made)) return made;
  const message =
    made.taken === "slug" ? "This slug is taken." : "Another link of yours has this external_id.";
  throw new Problem(409, `${made.taken}_taken`, message, { errors: [{ field: made.taken, message }] });
}

function orStale<T>(written: T | "stale"): T {
  if (written === "stale") throw changedMeanwhile();
  return written;
}

function changedMeanwhile(): Problem {
  return new Problem(412, "precondition_failed", "The link was changed meanwhile: read it again.");
}

/** Nothing that the caller did is wrong: the same again may well succeed. */
function restless(): Problem {
  const detail = "The link is made and deleted all the time: try again.";
  return new Problem(503, "temporarily_unavailable", detail, {
    headers: { "Retry-After": String(RETRY_AFTER_S) },
  });
}
