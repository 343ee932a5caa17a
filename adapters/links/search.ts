import type { Knex } from "knex";
import type { LinkFilter } from "../../resources/links/types.ts";
import { containsText, type Engine } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import { isCanceled } from "../database/retry.ts";
import type { LinkRow } from "../database/tables.ts";
import { foldText, SEPARATOR_OF_TEXTS, tagPattern } from "./row.ts";

export class SearchTimeout extends Error {
  override readonly name = "SearchTimeout";
}

/** Finds the links that match a filter, newest first, below the id `before`. @throws SearchTimeout */
export type SearchLinks = (
  organizationId: string,
  filter: LinkFilter,
  limit: number,
  before?: string,
) => Promise<LinkRow[]>;

const SEARCH_MS = 10_000;
// The links that one statement compares, in some milliseconds. On SQLite, other organizations wait for it.
const PIECE: Record<Engine, number> = { sqlite: 4000, postgres: 4000, mysql: 16_000 };
// After every id. Databases may order other characters than those of ids in their own way.
const LAST_ID = `lnk_${"Z".repeat(27)}`;

/** Creates the search. It compares an organization's links in pieces, or finds them in PostgreSQL's index. */
export function createSearch({ knex, engine, readAside }: Database): SearchLinks {
  // MariaDB would otherwise read all entries of the organization to find the end of a piece.
  const table = engine === "mysql" ? knex.raw("links force index (links_organization_id_id_index)") : "links";

  return async (organizationId, filter, limit, before = LAST_ID) => {
    const deadline = performance.now() + SEARCH_MS;
    const found: LinkRow[] = [];
    // No text of a link contains it.
    if (filter.search?.includes(SEPARATOR_OF_TEXTS)) return found;
    for (let below = before; ; ) {
      const end = idsBelow(organizationId, below).offset(PIECE[engine] - 1);
      const [last] = await read<{ id: string }>(end.limit(1));
      found.push(...(await readPage(matchesInPiece(organizationId, filter, below, last?.id))));
      if (!last || found.length === limit) return found;
      below = last.id;
      // The newest links have filled no page, so few match, or old ones.
      if (engine === "postgres" && isSelective(filter) && (await hasSearchIndex(knex))) {
        const left = limit - found.length;
        return [...found, ...(await readPage(matchesInIndex(organizationId, filter, below, left)))];
      }
    }

    function readPage(links: Knex.QueryBuilder): Promise<LinkRow[]> {
      const page = links.orderBy("id", "desc").limit(limit - found.length);
      return read<LinkRow>(page.select("links.*"));
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
  };

  function idsBelow(organizationId: string, below: string): Knex.QueryBuilder {
    const links = knex(table as string).where({ organization_id: organizationId });
    return links.where("id", "<", below).orderBy("id", "desc").select("id");
  }

  function liveLinks(organizationId: string, archived: boolean | undefined): Knex.QueryBuilder {
    const links = knex("links").where({ organization_id: organizationId }).whereNull("deleted_at");
    return archived === undefined ? links : links.where({ archived });
  }

  /** Selects the links of a piece that match. @param last the last id of the piece, if more links follow */
  function matchesInPiece(
    organizationId: string,
    { search, tag, archived }: LinkFilter,
    below: string,
    last: string | undefined,
  ): Knex.QueryBuilder {
    const links = liveLinks(organizationId, archived);
    if (engine === "postgres") {
      // PostgreSQL may read the links of all organizations in a range of ids.
      links.whereRaw("id = any(array(?))", [idsBelow(organizationId, below).limit(PIECE[engine])]);
    } else {
      links.where("id", "<", below);
      if (last !== undefined) links.where("id", ">=", last);
    }
    if (tag !== undefined) links.whereRaw(containsText(engine), ["tags", tagPattern(tag)]);
    if (search !== undefined) links.whereRaw(containsText(engine), ["searched", foldText(search)]);
    return links;
  }

  /** Selects the links that match with PostgreSQL's index, which doesn't have them in order. */
  function matchesInIndex(
    organizationId: string,
    { search, tag, archived }: LinkFilter,
    below: string,
    limit: number,
  ): Knex.QueryBuilder {
    const links = liveLinks(organizationId, archived);
    if (tag !== undefined) links.whereLike("tags", likePattern(tagPattern(tag)));
    if (search !== undefined) links.whereLike("searched", likePattern(foldText(search)));
    const page = knex.select("id").from("matches").where("id", "<", below).orderBy("id", "desc").limit(limit);
    return knex("links").withMaterialized("matches", links.select("id")).whereIn("id", page);
  }
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
