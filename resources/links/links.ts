import { z } from "zod";
import type { Cursors } from "../cursor.ts";
import type { Destination, Link, LinkFields, LinkFilter, LinkStore, Taken } from "../ports.ts";
import { notFound, Problem } from "../problem.ts";
import { validate } from "../validate.ts";
import { isReserved, isText, type Own, randomSlug } from "./rules.ts";
import { linkSchemas, toFields } from "./schema.ts";

/** Who acts, and for which organization. */
export type Actor = { organizationId: string; clientId: string; userId?: string };

/** Accepts or refuses the version that a change starts from (RFC 9110 §13.1.1). */
export type Precondition = (version: number) => boolean;

/** The one core of links; REST, MCP and pages are its faces. Everything refused is a `Problem`. */
export type Links = {
  schemas: ReturnType<typeof linkSchemas>;
  create(actor: Actor, input: unknown): Promise<Link>;
  get(actor: Actor, id: string): Promise<Link>;
  list(actor: Actor, query: unknown): Promise<{ links: Link[]; nextCursor: string | null }>;
  update(actor: Actor, id: string, input: unknown, precondition?: Precondition): Promise<Link>;
  remove(actor: Actor, id: string, precondition?: Precondition): Promise<void>;
  /** Whether a word belongs to the service itself. */
  isReserved(slug: string): boolean;
  /** Where a slug leads now; counts the click unless it is only a look. */
  follow(slug: string, options: { counts: boolean }): Promise<{ status: number; location: string }>;
};

type LinksOptions = { store: LinkStore; cursors: Cursors } & Own;

// Random slugs that are all taken, or a link that changes under us each time, mean that something else is wrong.
const ATTEMPTS = 5;

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
const filterText = (max: number) =>
  z.string().min(1).max(max).refine(isText, { error: "This has characters that no text has." }).optional();

/** The query of a list; values come from an address, so they are text. */
export const listQuery = z.strictObject({
  limit: z
    .union([z.number(), z.string().regex(/^\d+$/).transform(Number)], WHOLE)
    .pipe(z.int(WHOLE).min(1, WHOLE).max(100, WHOLE))
    .default(25),
  cursor: z.string().optional(),
  search: filterText(255),
  tag: filterText(50),
  archived: z
    .enum(["true", "false"], { error: "This must be true or false." })
    .transform((word) => word === "true")
    .optional(),
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

  /** Reads, checks, writes; again if somebody was faster and the caller named no version. */
  async function change<T>(
    actor: Actor,
    id: string,
    precondition: Precondition | undefined,
    write: (link: Link) => Promise<T | "stale">,
  ): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const link = await get(actor, id);
      if (precondition && !precondition(link.version)) throw changedMeanwhile();
      const written = await write(link);
      if (written !== "stale") return written;
    }
    throw changedMeanwhile();
  }

  return {
    schemas,
    get,

    async create({ organizationId, userId, clientId }, input) {
      const fields = { ...LINK_DEFAULTS, ...toFields(validate(schemas.create, input)) } as LinkFields;
      const createdBy = userId ?? clientId;
      if (fields.slug) return orTaken(await store.create(organizationId, createdBy, fields));
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const made = await store.create(organizationId, createdBy, { ...fields, slug: randomSlug() });
        if (!("taken" in made && made.taken === "slug")) return orTaken(made);
      }
      throw new Error("no free slug was found");
    },

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
      return change(actor, id, precondition, async (link) => {
        const written = await store.update(actor.organizationId, id, changes, link.version);
        if (!written) throw notFound("link");
        return written === "stale" ? written : orTaken(written);
      });
    },

    remove: (actor, id, precondition) =>
      change(actor, id, precondition, async (link) => {
        const removed = await store.remove(actor.organizationId, id, precondition && link.version);
        if (removed === false) throw notFound("link");
        return removed === "stale" ? removed : undefined;
      }),

    isReserved: (slug) => isReserved(slug, own),

    async follow(slug, { counts }) {
      const link = await store.resolve(slug);
      if (!link) throw notFound("link");
      const now = Date.now();
      if (isOver(link, now) || (counts && !(await store.click(link, now)))) {
        throw new Problem(410, "link_gone", "This link does not lead anywhere any more.");
      }
      // Stored as it was sent; a header holds ASCII only.
      return {
        status: link.redirectType,
        location: PLAIN_URL.test(link.url) ? link.url : new URL(link.url).href,
      };
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

function changedMeanwhile(): Problem {
  return new Problem(412, "precondition_failed", "The link was changed meanwhile: read it again.");
}
