import { LRUCache } from "lru-cache";
import type { LinkStore, ResolvedLink } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";

type Resolve = LinkStore["resolve"];
type Waiting = { slug: string; resolve(link: ResolvedLink | undefined): void; reject(error: unknown): void };

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
  const readVersion = prepare<{ version: number }[], never>((q) => q("link_changes").select("version"));
  const links = new LRUCache<string, ResolvedLink>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ slug, url }) => LINK_BYTES + slug.length + url.length,
  });
  let cachedVersion: number | undefined;
  let waiting: Waiting[] = [];

  async function answer() {
    const requests = waiting;
    waiting = [];
    try {
      const [row] = await readVersion({});
      const version = row?.version;
      if (version === undefined || version !== cachedVersion) links.clear();
      cachedVersion = version;
      for (const { slug, resolve, reject } of requests) {
        const link = links.get(slug);
        if (link) resolve(link);
        else findAt(version, slug).then(resolve, reject);
      }
    } catch (error) {
      for (const { reject } of requests) reject(error);
    }
  }

  async function findAt(version: number | undefined, slug: string) {
    const link = await find(slug);
    // A link with a limit of clicks changes with each of them.
    if (link?.maxClicks === null && version === cachedVersion) links.set(slug, link);
    return link;
  }

  return (slug) =>
    new Promise((resolve, reject) => {
      waiting.push({ slug, resolve, reject });
      if (waiting.length === 1) setImmediate(answer);
    });
}

function prepareSlugLookup({ lookup }: Pick<Database, "lookup">): Resolve {
  const findBySlug = lookup<ResolvedRow>({
    build: (q, slug) =>
      q("links as l")
        .join("organizations as o", "o.id", "l.organization_id")
        .where("l.slug", slug)
        .select(RESOLVED_COLUMNS),
    column: "slug",
    inTurn: true,
  });
  return async (slug) => {
    const [row] = await findBySlug(slug);
    if (!row) return undefined;
    const { deletedAt, organizationDeletedAt, disabledAt, suspendedAt, archived, ...link } = row;
    const isDeleted = deletedAt !== null || organizationDeletedAt !== null;
    const isDisabled = disabledAt !== null || suspendedAt !== null;
    return { ...link, archived: Boolean(archived), isDeleted, isDisabled };
  };
}

/** Reads what most redirects don't need. The fallback of a deleted link is erased, so it has its organization's. */
export function prepareFindFallback({ prepare }: Pick<Database, "prepare">): LinkStore["findFallback"] {
  const find = prepare<{ url: string | null }[], "id">((q, { id }) =>
    q("links as l")
      .join("organizations as o", "o.id", "l.organization_id")
      .where("l.id", id)
      .whereNull("l.disabled_at")
      .whereNull("o.suspended_at")
      .whereNull("o.deleted_at")
      .select({ url: q.raw("coalesce(l.fallback_url, o.fallback_url)") }),
  );
  return async (id) => (await find({ id }))[0]?.url ?? null;
}

type ResolvedRow = Omit<ResolvedLink, "isDeleted" | "isDisabled"> & {
  deletedAt: number | null;
  organizationDeletedAt: number | null;
  disabledAt: number | null;
  suspendedAt: number | null;
};

const RESOLVED_COLUMNS = {
  id: "l.id",
  organizationId: "l.organization_id",
  slug: "l.slug",
  url: "l.url",
  archived: "l.archived",
  expiresAt: "l.expires_at",
  clicks: "l.clicks",
  botClicks: "l.bot_clicks",
  maxClicks: "l.max_clicks",
  redirectType: "l.redirect_type",
  deletedAt: "l.deleted_at",
  organizationDeletedAt: "o.deleted_at",
  disabledAt: "l.disabled_at",
  suspendedAt: "o.suspended_at",
};
