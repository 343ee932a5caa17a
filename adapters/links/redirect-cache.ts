import { setImmediate } from "node:timers/promises";
import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { LinkStore, ResolvedLink } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";

type Resolve = LinkStore["resolve"];

// About 16,000 links with an ordinary destination.
const CACHE_BYTES = 8 * 2 ** 20;
// What a cached link takes without its slug and its destination.
const LINK_BYTES = 400;

export function prepareResolve(database: Pick<Database, "engine" | "lookup" | "prepare">): Resolve {
  const find = prepareSlugLookup(database);
  return database.engine === "sqlite" ? cached(database, find) : find;
}

/** A redirect is as current as its request: the links' version is read once per turn, after requests arrived. */
function cached({ prepare }: Pick<Database, "prepare">, find: Resolve): Resolve {
  const readVersion = prepare<{ version: number }[], never>("select version from link_changes");
  const links = new LRUCache<string, ResolvedLink>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ slug, url, rules }) =>
      rules.reduce((sum, rule) => sum + LINK_BYTES + rule.url.length, LINK_BYTES + slug.length + url.length),
  });
  let cachedVersion: number | undefined;
  let reading: Promise<number | undefined> | undefined;

  /** Forgets the links if one of them has changed. */
  async function readCurrent(): Promise<number | undefined> {
    await setImmediate();
    reading = undefined; // the requests of the next turn need a read of their own
    const [row] = await readVersion({});
    if (row?.version === undefined || row.version !== cachedVersion) links.clear();
    cachedVersion = row?.version;
    return cachedVersion;
  }

  return async (slug) => {
    reading ??= readCurrent();
    const version = await reading;
    const known = links.get(slug);
    if (known) return known;
    const link = await find(slug);
    // A link with a limit of clicks changes with each of them.
    if (link?.maxClicks === null && version === cachedVersion) links.set(slug, link);
    return link;
  };
}

function prepareSlugLookup({ lookup }: Pick<Database, "lookup">): Resolve {
  const findBySlug = lookup<ResolvedRow>({
    sql: LINK_BY_SLUG,
    column: "slug",
    inTurn: true,
  });
  return async (slug) => {
    const [row] = await findBySlug(slug);
    if (!row) return undefined;
    const { deletedAt, organizationDeletedAt, disabledAt, suspendedAt, archived, ...link } = row;
    const isDeleted = deletedAt !== null || organizationDeletedAt !== null;
    const isDisabled = disabledAt !== null || suspendedAt !== null;
    return {
      ...link,
      archived: Boolean(archived),
      forwardQuery: Boolean(link.forwardQuery),
      forwardPath: Boolean(link.forwardPath),
      rules: link.rules === "[]" ? NO_RULES : JSON.parse(link.rules),
      hasCard: Boolean(link.hasCard),
      hasPassword: Boolean(link.hasPassword),
      isDeleted,
      isDisabled,
    };
  };
}

/** Reads what most redirects don't need. The fallback of a deleted link is erased, so it has its organization's. */
export async function findFallback(q: Knex, id: string): Promise<string | null> {
  const found = await q("links as l")
    .join("organizations as o", "o.id", "l.organization_id")
    .where("l.id", id)
    .whereNull("l.disabled_at")
    .whereNull("o.suspended_at")
    .whereNull("o.deleted_at")
    .first({ url: q.raw("coalesce(l.fallback_url, o.fallback_url)") });
  return found?.url ?? null;
}

const NO_RULES: ResolvedLink["rules"] = [];

type ResolvedRow = Omit<ResolvedLink, "isDeleted" | "isDisabled" | "rules"> & {
  rules: string;
  deletedAt: number | null;
  organizationDeletedAt: number | null;
  disabledAt: number | null;
  suspendedAt: number | null;
};

const LINK_BY_SLUG = `select l.id, l.organization_id as "organizationId", l.slug, l.url, l.archived,
    l.expires_at as "expiresAt", l.clicks, l.bot_clicks as "botClicks", l.max_clicks as "maxClicks",
    l.redirect_type as "redirectType", l.forward_query as "forwardQuery", l.forward_path as "forwardPath", l.rules,
    l.card is not null as "hasCard", l.password_hash is not null as "hasPassword",
    l.deleted_at as "deletedAt", o.deleted_at as "organizationDeletedAt",
    l.disabled_at as "disabledAt", o.suspended_at as "suspendedAt"
  from links as l
  join organizations as o on o.id = l.organization_id
  where l.slug = :key`;
