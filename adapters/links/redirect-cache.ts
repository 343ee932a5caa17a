import { setImmediate } from "node:timers/promises";
import type { Knex } from "knex";
import { LRUCache } from "lru-cache";
import type { DomainStore, ServedDomain } from "../../resources/domains/types.ts";
import type { LinkOwner, LinkStore, ResolvedLink } from "../../resources/links/types.ts";
import type { Database } from "../database/index.ts";

/** What redirects read, as current as their request. */
export type CurrentReads = { resolveLink: LinkStore["resolve"]; resolveDomain: DomainStore["resolve"] };

/** What a lookup finds. */
export type Resolved = ResolvedLink | ServedDomain | undefined;

/** About 16,000 links with an ordinary destination. */
export const CACHE_BYTES = 8 * 2 ** 20;
// What a cached link takes without its slug and its destination; and a domain, or that there is none.
const ITEM_BYTES = 400;

export function prepareCurrentReads(database: Pick<Database, "engine" | "lookup" | "prepare">): CurrentReads {
  const reads = { resolveLink: prepareLinkLookup(database), resolveDomain: prepareDomainLookup(database) };
  return database.engine === "sqlite" ? cached(database, reads) : reads;
}

/** A redirect is as current as its request: the links' version is read once per turn, after requests arrived. */
function cached({ prepare }: Pick<Database, "prepare">, reads: CurrentReads): CurrentReads {
  const readVersion = prepare<{ version: number }[], never>("select version from link_changes");
  const items = new LRUCache<string, { value: unknown }>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ value }) => sizeOf(value as Resolved),
  });
  let cachedVersion: number | undefined;
  let reading: Promise<void> | undefined;

  /** Forgets everything if a link or a domain has changed. */
  async function readCurrent(): Promise<void> {
    await setImmediate();
    reading = undefined; // the requests of the next turn need a read of their own
    const [row] = await readVersion({});
    if (row?.version === undefined || row.version !== cachedVersion) items.clear();
    cachedVersion = row?.version;
  }

  /** `kind` keeps the keys of different reads apart. */
  const remember =
    <Value>(kind: string, find: (key: string) => Promise<Value>, isKept: (value: Value) => boolean) =>
    async (key: string, asOf?: number): Promise<Value> => {
      if (asOf === undefined || asOf !== cachedVersion) {
        reading ??= readCurrent();
        await reading;
      }
      const version = cachedVersion;
      const known = items.get(kind + key);
      if (known) return known.value as Value;
      const value = await find(key);
      if (version === cachedVersion && isKept(value)) items.set(kind + key, { value });
      return value;
    };

  const findDomain = remember("host ", reads.resolveDomain, () => true);
  return {
    // A link with a limit of clicks changes with each of them.
    resolveLink: remember("", reads.resolveLink, (link) => link?.maxClicks === null),
    async resolveDomain(host) {
      const domain = await findDomain(host);
      return domain && { ...domain, asOf: cachedVersion };
    },
  };
}

/** Returns the bytes that a cached lookup takes. */
export function sizeOf(value: Resolved): number {
  if (!value || !("rules" in value)) return ITEM_BYTES;
  const { slug, url, rules } = value;
  return rules.reduce(
    (sum, rule) => sum + ITEM_BYTES + rule.url.length,
    ITEM_BYTES + slug.length + url.length,
  );
}

function prepareLinkLookup({ lookup }: Pick<Database, "lookup">): CurrentReads["resolveLink"] {
  const findByAddress = lookup<ResolvedRow>({ sql: LINK_BY_ADDRESS, column: "address" });
  return async (key) => {
    const [row] = await findByAddress(key);
    if (!row) return undefined;
    const { address, deletedAt, organizationDeletedAt, disabledAt, suspendedAt, archived, ...link } = row;
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

function prepareDomainLookup({ lookup }: Pick<Database, "lookup">): CurrentReads["resolveDomain"] {
  const findByHost = lookup<ServedDomain>({ sql: DOMAIN_BY_HOST, column: "host" });
  return async (host) => {
    const [row] = await findByHost(host);
    return row && { ...row, caseSensitive: Boolean(row.caseSensitive) };
  };
}

/** Reads what most redirects don't need. The fallback of a deleted link is erased, so it has its domain's or organization's. */
export async function findOwner(q: Knex, id: string): Promise<LinkOwner | undefined> {
  return q("links as l")
    .join("organizations as o", "o.id", "l.organization_id")
    .leftJoin("domains as d", (join) =>
      join.on("d.organization_id", "l.organization_id").andOn("d.live_host", "l.domain"),
    )
    .where("l.id", id)
    .whereNull("l.disabled_at")
    .whereNull("o.suspended_at")
    .whereNull("o.deleted_at")
    .first({
      name: "o.name",
      fallbackUrl: q.raw("coalesce(l.fallback_url, d.fallback_url, o.fallback_url)"),
    });
}

const NO_RULES: ResolvedLink["rules"] = [];

type ResolvedRow = Omit<ResolvedLink, "isDeleted" | "isDisabled" | "rules"> & {
  address: string;
  rules: string;
  deletedAt: number | null;
  organizationDeletedAt: number | null;
  disabledAt: number | null;
  suspendedAt: number | null;
};

const LINK_BY_ADDRESS = `select l.address, l.id, l.organization_id as "organizationId", l.domain, l.slug, l.url, l.archived,
    l.expires_at as "expiresAt", l.clicks, l.bot_clicks as "botClicks", l.max_clicks as "maxClicks",
    l.redirect_type as "redirectType", l.forward_query as "forwardQuery", l.forward_path as "forwardPath", l.rules,
    l.card is not null as "hasCard", l.password_hash is not null as "hasPassword",
    l.deleted_at as "deletedAt", o.deleted_at as "organizationDeletedAt",
    l.disabled_at as "disabledAt", o.suspended_at as "suspendedAt", o.time_zone as "timeZone"
  from links as l
  join organizations as o on o.id = l.organization_id
  where l.address = :key`;

const DOMAIN_BY_HOST = `select d.live_host as "host", d.id, d.organization_id as "organizationId",
    d.case_sensitive as "caseSensitive",
    case when o.suspended_at is null then d.root_redirect_url end as "rootRedirectUrl",
    case when o.suspended_at is null then d.not_found_url end as "notFoundUrl"
  from domains as d
  join organizations as o on o.id = d.organization_id
  where d.live_host = :key and o.deleted_at is null`;
