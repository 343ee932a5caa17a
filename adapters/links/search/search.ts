import type { Knex } from "knex";
import type { LinkFilter } from "../../../resources/links/types.ts";
import { containsText } from "../../database/engine.ts";
import type { Database } from "../../database/index.ts";
import type { LinkRow } from "../../database/link-tables.ts";
import { tagPattern } from "../row.ts";
import { type Candidates, createCandidates, justAfter, type Range } from "./candidates.ts";
import { type Indexer, MANY_CHANGES, SEGMENT_LINKS } from "./indexer.ts";
import { type Segment, segmentsOf } from "./segments.ts";

/** A search that did not finish in time. */
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
// Ids in one statement, and segments whose grams are read together.
const MAX_IDS = 500;
const SEGMENTS_PER_READ = 16;
// After every id. Databases may order other characters than those of ids in their own way.
const LAST_ID = `lnk_${"Z".repeat(27)}`;

/**
 * Creates the search. Segments of indexed links are searched by their grams; the newest links, which are in no segment,
 * are read. Every candidate is compared in the database, so the index decides how long a search takes, never what it finds.
 * Each statement reads a bounded number of rows.
 */
export function createSearch(database: Database, indexer: Indexer): SearchLinks {
  const { knex, engine, readAside } = database;

  return async (organizationId, filter, limit, before = LAST_ID) => {
    const deadline = performance.now() + SEARCH_MS;
    const found: LinkRow[] = [];

    async function read<Row>(query: Knex.QueryBuilder): Promise<Row[]> {
      const left = Math.ceil(deadline - performance.now());
      if (left <= 0) throw new SearchTimeout();
      try {
        return await readAside<Row>(query, left);
      } catch (error) {
        throw (error as Error).name === "KnexTimeoutError" ? new SearchTimeout() : error;
      }
    }
    const links = () => knex("links").where({ organization_id: organizationId });
    const findMatches = async (narrow: (query: Knex.QueryBuilder) => void) => {
      const query = links()
        .whereNull("deleted_at")
        .where((clause) => matchFilter(clause, filter, engine))
        .orderBy("id", "desc")
        .limit(limit - found.length);
      narrow(query);
      found.push(...(await read<LinkRow>(query)));
    };

    async function compare(ids: string[]) {
      for (let start = 0; start < ids.length && found.length < limit; start += MAX_IDS) {
        await findMatches((query) => query.whereIn("id", ids.slice(start, start + MAX_IDS)));
      }
    }

    /** Reads the links of a range without an index. Returns how many steps that took. */
    async function scan({ afterId, below }: Range): Promise<number> {
      let upper = below;
      for (let steps = 1; ; steps++) {
        const query = links().where("id", ">", afterId).where("id", "<", upper).orderBy("id", "desc");
        const [last] = await read<{ id: string }>(query.offset(SEGMENT_LINKS).limit(1).select("id"));
        const lower = last?.id ?? afterId;
        const to = upper;
        await findMatches((matches) => matches.where("id", ">", lower).where("id", "<", to));
        if (!last || found.length >= limit) return steps;
        upper = justAfter(lower); // the link at the boundary belongs to the next step
      }
    }

    // Before the segments: a change that is no longer marked is then in the segment that is read.
    const changes = await read<{ link_id: string }>(
      knex("link_search_changes").where({ organization_id: organizationId }).select("link_id"),
    );
    const segments = await read<Segment>(segmentsOf(knex, organizationId));
    const changed = changes
      .map(({ link_id }) => link_id)
      .sort()
      .reverse();
    if (segments.length > 0 && changed.length > MANY_CHANGES) indexer.request(organizationId);

    const newest = segments[0]?.lastId ?? "";
    if (newest < before) {
      const steps = await scan({ afterId: newest, below: before });
      if (steps > 1) indexer.request(organizationId);
    }
    const older = segments.filter(({ afterId }) => afterId < before);
    const candidatesIn: Candidates = createCandidates(knex, read, filter);
    for (let start = 0; start < older.length && found.length < limit; start += SEGMENTS_PER_READ) {
      const group = older.slice(start, start + SEGMENTS_PER_READ);
      for (const part of await candidatesIn(group, changed, before)) {
        if (found.length >= limit) break;
        if (Array.isArray(part)) await compare(part);
        else await scan(part);
      }
    }
    return found;
  };
}

function matchFilter(
  clause: Knex.QueryBuilder,
  { search, tag, archived }: LinkFilter,
  engine: Database["engine"],
): void {
  if (archived !== undefined) clause.where({ archived });
  if (tag !== undefined) clause.whereRaw(containsText(engine), ["tags", tagPattern(tag)]);
  if (search !== undefined) clause.where((texts) => matchAnyText(texts, likePattern(search), engine));
}

function matchAnyText(clause: Knex.QueryBuilder, pattern: string, engine: Database["engine"]): void {
  // MariaDB's default collations ignore accents, which the other databases do not.
  const text = engine === "mysql" ? "lower(??) collate utf8mb4_bin" : "lower(??)";
  for (const column of ["url", "slug", "title"]) {
    clause.orWhereRaw(`${text} like lower(?) escape '!'`, [column, pattern]);
  }
}

/** Returns a LIKE pattern that matches the literal text. `!` is the escape character: no engine gives it a meaning. */
function likePattern(text: string): string {
  return `%${text.replace(/[!%_]/g, "!$&")}%`;
}
