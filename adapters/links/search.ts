import type { Knex } from "knex";
import { addressOf, type LinkDomain } from "../../resources/links/rules.ts";
import type { Boundary, FoundIds, LinkFilter, LinkSort, ListPart } from "../../resources/links/types.ts";
import { idBound } from "../crypto/ids.ts";
import { containsText, type Engine } from "../database/engine.ts";
import { isCanceled } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { LinkRow } from "../database/tables/links.ts";
import { foldText, SEPARATOR_OF_TEXTS, tagPattern } from "./row.ts";

export class SearchTimeout extends Error {
  override readonly name = "SearchTimeout";
}

/** Finds the links that match a filter. @throws SearchTimeout */
type LinkSearch = {
  /** In the order of a part of their list. */
  findRows(organizationId: string, filter: LinkFilter, limit: number, part: ListPart): Promise<LinkRow[]>;
  findIds(organizationId: string, filter: LinkFilter, limit: number, maxCompared?: number): Promise<FoundIds>;
};

const SEARCH_MS = 10_000;
// The links that one statement compares, in some milliseconds. On SQLite, other organizations wait for it.
const PIECE: Record<Engine, number> = { sqlite: 4000, postgres: 4000, mysql: 16_000 };
// Before and after every id. Databases may order other characters than those of ids in their own way.
const FIRST_ID = "lnk_";
const LAST_ID = `${FIRST_ID}${"Z".repeat(27)}`;
// The id of a link can be as old as the idempotency key of its request, and newer after the clock was set back.
const ID_TOLERANCE_MS = 25 * 60 * 60 * 1000;
// MariaDB's indexes hold no longer texts, and PostgreSQL's few more bytes.
const INDEXED_URL_LENGTH = 255;
const INDEXED_URL = `substr(url, 1, ${INDEXED_URL_LENGTH})`;

// The order of creation is that of the ids.
const VALUES: Record<LinkSort, string> = {
  created_at: "0",
  clicks: "clicks",
  last_clicked_at: "coalesce(last_clicked_at, 0)",
};

/** Some ids: from `start` upward if `isUp`, otherwise below it; up to `end`, or all that follow. */
type Ids = { start: string; end?: string | undefined; isUp: boolean };

/** Creates the search. It compares an organization's links in pieces, or finds them in PostgreSQL's index. */
export function createSearch({ knex, engine, readAside }: Database): LinkSearch {
  // MariaDB would otherwise read all entries of the organization to find the end of a piece.
  const table = engine === "mysql" ? knex.raw("links force index (links_organization_id_id_index)") : "links";

  return {
    async findRows(organizationId, filter, limit, part) {
      if (matchesNothing(filter)) return [];
      const { findFirst, readRows } = createPass(organizationId, filter, limit, part);
      for (;;) {
        const { found } = await findFirst();
        const rows = await readRows(found);
        // Otherwise one was deleted in between, and another link takes its place.
        if (rows.length === found.length) return rows;
      }
    },

    async findIds(organizationId, filter, limit, maxCompared = Infinity) {
      if (matchesNothing(filter)) return { ids: [], isComplete: true };
      const { findFirst } = createPass(organizationId, filter, limit, {});
      const { found, isComplete } = await findFirst(maxCompared / PIECE[engine]);
      return { ids: found.map(({ id }) => id), isComplete };
    },
  };

  function createPass(organizationId: string, filter: LinkFilter, limit: number, part: ListPart) {
    const { sort = "created_at", from, isAscending = false } = part;
    const { lowest, highest } = idsOf(filter);
    const deadline = performance.now() + SEARCH_MS;

    /**
     * Finds the first links of the part. Those of a list in the order of creation are in the first pieces. After
     * `maxPieces`, the others are left out, and more may match.
     */
    async function findFirst(maxPieces = Infinity): Promise<{ found: Boundary[]; isComplete: boolean }> {
      const isByCreation = sort === "created_at";
      let found: Boundary[] = [];
      const add = async (matches: Knex.QueryBuilder) => {
        found = [...found, ...(await read<Boundary>(firstOf(matches)))].sort(compare).slice(0, limit);
      };
      if (isExact(filter) || (isByCreation && isOfDomain(filter))) {
        await add(matchesExactly(organizationId, filter, await addressesOf(organizationId, filter.slug)));
        return { found, isComplete: true };
      }
      const isUp = isByCreation && isAscending;
      const last = isUp ? highest : lowest;
      let start = isUp ? (lowest ?? FIRST_ID) : (highest ?? LAST_ID);
      if (isByCreation && from && from.id < start !== isUp) start = from.id;
      for (let pieces = 1; ; pieces++) {
        const ends = idsFrom(organizationId, { start, end: last, isUp }).offset(
          PIECE[engine] - (isUp ? 0 : 1),
        );
        const [end] = await read<{ id: string }>(ends.limit(1));
        await add(matchesInPiece(organizationId, filter, { start, end: end?.id ?? last, isUp }));
        if (!end || (isByCreation && found.length === limit)) return { found, isComplete: true };
        if (pieces >= maxPieces) return { found, isComplete: false };
        start = end.id;
        // The first piece has filled no page, so few match, or old ones. The index finds all of them.
        if (
          engine === "postgres" &&
          maxPieces === Infinity &&
          isSelective(filter) &&
          (await hasSearchIndex(knex))
        ) {
          await add(matchesInIndex(organizationId, filter, { start, end: last, isUp }));
          return { found, isComplete: true };
        }
      }
    }

    function firstOf(matches: Knex.QueryBuilder): Knex.QueryBuilder {
      const value = VALUES[sort];
      const order = isAscending ? "asc" : "desc";
      if (from) {
        const { id } = from;
        const [beyond, further] = isAscending ? [">=", ">"] : ["<", "<"];
        if (sort === "created_at") matches.where("id", beyond, id);
        else
          matches.whereRaw(`(${value} ${further} ? or (${value} = ? and id ${beyond} ?))`, [
            from.value,
            from.value,
            id,
          ]);
      }
      if (sort !== "created_at") matches.orderByRaw(`${value} ${order}`);
      return matches
        .orderBy("id", order)
        .limit(limit)
        .select("id", knex.raw(`${value} as value`));
    }

    function compare(one: Boundary, other: Boundary): number {
      const difference = other.value - one.value || (one.id < other.id ? 1 : -1);
      return isAscending ? -difference : difference;
    }

    /** Reads links with the values that they were found by, which may have changed since. */
    async function readRows(found: Boundary[]): Promise<LinkRow[]> {
      const ids = found.map(({ id }) => id);
      const rows = await read<LinkRow>(liveLinks(organizationId, {}).whereIn("id", ids).select("*"));
      const byId = new Map(rows.map((row) => [row.id, row]));
      return found.flatMap(({ id, value }) => {
        const row = byId.get(id);
        if (!row || sort === "created_at") return row ?? [];
        return sort === "clicks" ? { ...row, clicks: value } : { ...row, last_clicked_at: value || null };
      });
    }

    async function read<Row>(query: Knex.QueryBuilder): Promise<Row[]> {
      const left = Math.ceil(deadline - performance.now());
      if (left <= 0) throw new SearchTimeout();
      try {
        return await readAside<Row>(query, left);
      } catch (error) {
        throw isCanceled(error) ? new SearchTimeout() : error;
      }
    }

    return { findFirst, readRows };
  }

  function idsFrom(organizationId: string, ids: Ids): Knex.QueryBuilder {
    const links = knex(table as string).where({ organization_id: organizationId });
    return within(links, ids)
      .orderBy("id", ids.isUp ? "asc" : "desc")
      .select("id");
  }

  function liveLinks(
    organizationId: string,
    { domain, archived, createdAfter, createdBefore }: LinkFilter,
  ): Knex.QueryBuilder {
    const links = knex("links").where({ organization_id: organizationId }).whereNull("deleted_at");
    if (domain === null) links.whereNull("domain");
    else if (domain !== undefined) links.where({ domain });
    if (archived !== undefined) links.where({ archived });
    if (createdAfter !== undefined) links.where("created_at", ">=", createdAfter);
    if (createdBefore !== undefined) links.where("created_at", "<", createdBefore);
    return links;
  }

  function matches(organizationId: string, filter: LinkFilter): Knex.QueryBuilder {
    const { search, tag, slugPrefix } = filter;
    const links = liveLinks(organizationId, filter);
    if (slugPrefix !== undefined) {
      links.whereRaw("substr(slug, 1, ?) = ?", [slugPrefix.length, slugPrefix]);
    }
    if (tag !== undefined) links.whereRaw(containsText(engine), ["tags", tagPattern(tag)]);
    if (search !== undefined) links.whereRaw(containsText(engine), ["searched", foldText(search)]);
    return links;
  }

  function matchesInPiece(organizationId: string, filter: LinkFilter, piece: Ids): Knex.QueryBuilder {
    const links = matches(organizationId, filter);
    // PostgreSQL may read the links of all organizations in a range of ids.
    if (engine === "postgres") return links.whereRaw("id = any(array(?))", [idsFrom(organizationId, piece)]);
    return within(links, piece);
  }

  /** Returns the addresses that links with a slug can have; undefined without a slug. */
  async function addressesOf(organizationId: string, slug: string | undefined) {
    if (slug === undefined) return undefined;
    const domains = await listLinkDomains(knex, organizationId, { isVerified: false });
    return [null, ...domains.values()].map((domain) => addressOf(slug, domain));
  }

  function matchesExactly(
    organizationId: string,
    filter: LinkFilter,
    addresses: string[] | undefined,
  ): Knex.QueryBuilder {
    const { url, externalId } = filter;
    const links = matches(organizationId, filter);
    if (addresses) links.whereIn("address", addresses);
    if (externalId !== undefined) links.where({ external_id: externalId });
    if (url === undefined) return links;
    if (engine === "postgres") links.whereRaw(`${INDEXED_URL} = substr(?, 1, ${INDEXED_URL_LENGTH})`, [url]);
    // MariaDB's collation ignores case.
    if (engine === "mysql") links.whereRaw("cast(url as binary) = ?", [url]);
    return links.where({ url });
  }

  /** Selects the links that match with PostgreSQL's index, which doesn't have them in order. */
  function matchesInIndex(organizationId: string, filter: LinkFilter, ids: Ids): Knex.QueryBuilder {
    const { search, tag } = filter;
    const links = liveLinks(organizationId, filter);
    if (tag !== undefined) links.whereLike("tags", likePattern(tagPattern(tag)));
    if (search !== undefined) links.whereLike("searched", likePattern(foldText(search)));
    const matches = links.select("id", "clicks", "last_clicked_at");
    return within(knex("matches").withMaterialized("matches", matches), ids);
  }
}

/**
 * Lists the domains of an organization that its links have, by host; those that new ones can have are verified. `isLocked`:
 * none is deleted until the transaction ends.
 */
export async function listLinkDomains(
  q: Knex,
  organization_id: string,
  { isVerified = true, isLocked = false } = {},
): Promise<Map<string, LinkDomain>> {
  const domains = q("domains")
    .where({ organization_id })
    .orderBy("host")
    .select("id", "host", "case_sensitive");
  if (isVerified) domains.whereNotNull("live_host");
  if (isLocked) domains.forShare();
  const rows = await domains;
  return new Map(rows.map((row) => [row.host, { id: row.id, caseSensitive: Boolean(row.case_sensitive) }]));
}

/** Returns whether an index has the few links that a filter can match. */
function isExact({ slug, url, externalId }: LinkFilter): boolean {
  return [slug, url, externalId].some((value) => value !== undefined);
}

/** Returns whether an index has the links that match, in the order of their creation. */
function isOfDomain({ domain, search, tag, slugPrefix }: LinkFilter): boolean {
  return typeof domain === "string" && [search, tag, slugPrefix].every((text) => text === undefined);
}

/** Returns the range of ids that links of a filter can have. */
function idsOf({ createdAfter, createdBefore }: LinkFilter) {
  const idAt = (at: number) => idBound("lnk", Math.max(0, at));
  return {
    lowest: createdAfter === undefined ? undefined : idAt(createdAfter - ID_TOLERANCE_MS),
    highest: createdBefore === undefined ? undefined : idAt(createdBefore + ID_TOLERANCE_MS),
  };
}

/** Returns whether a text is searched that no link contains. */
function matchesNothing({ search }: LinkFilter): boolean {
  return search?.includes(SEPARATOR_OF_TEXTS) ?? false;
}

function within(links: Knex.QueryBuilder, { start, end, isUp }: Ids): Knex.QueryBuilder {
  links.where("id", isUp ? ">=" : "<", start);
  return end === undefined ? links : links.where("id", isUp ? "<" : ">=", end);
}

export async function hasSearchIndex(knex: Knex): Promise<boolean> {
  const { rows } = await knex.raw(
    "select 1 from pg_index where indexrelid = to_regclass('links_search') and indisvalid",
  );
  return rows.length > 0;
}

/** Returns whether PostgreSQL's index can find a filter: it knows sequences of three letters or digits. */
function isSelective({ search = "", tag = "" }: LinkFilter): boolean {
  return [search, tag].some((text) => /[\p{L}\p{N}]{3}/u.test(text));
}

function likePattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, "\\$&")}%`;
}
