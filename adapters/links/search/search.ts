import type { Knex } from "knex";
import type { LinkFilter } from "../../../resources/links/types.ts";
import type { Database } from "../../database/index.ts";
import type { LinkRow } from "../../database/link-tables.ts";
import { isCanceled } from "../../database/retry.ts";
import { linkColumns } from "../unfolded-clicks.ts";
import { type Candidates, createCandidates, justAfter, type Range, rangeOf } from "./candidates.ts";
import { type Indexer, MANY_CHANGES, SEGMENT_LINKS } from "./indexer.ts";
import { createMatcher } from "./match.ts";
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
// Ids in one statement.
const MAX_IDS = 500;
// Segments whose grams are read together: few for a text that many links contain, more if it is rare.
const FEW_SEGMENTS = 16;
const MANY_SEGMENTS = 64;
// The changed links that are compared for one group of segments. A segment with more of them is read instead.
const MAX_CHANGES = 1000;
// After every id. Databases may order other characters than those of ids in their own way.
const LAST_ID = `lnk_${"Z".repeat(27)}`;

/**
 * Creates the search. Segments of indexed links are searched by their grams; the newest links, which are in no segment,
 * are read. Every candidate is compared in the database, so the index decides how long a search takes, never what it finds.
 * Each statement reads a bounded number of rows.
 */
export function createSearch(database: Database, indexer: Indexer): SearchLinks {
  const { knex, engine, readAside } = database;
  const columns = linkColumns(database);

  return async (organizationId, filter, limit, before = LAST_ID) => {
    const deadline = performance.now() + SEARCH_MS;
    const matcher = createMatcher(filter, engine);
    const candidatesIn: Candidates = createCandidates(knex, read, filter);
    const found: LinkRow[] = [];

    let [below, olderThan, size] = [before, before, FEW_SEGMENTS];
    for (;;) {
      // Before the segments: a change that is no longer marked is then in the segment that is read.
      const changes = await readChanges(below);
      const segments = await readSegments(olderThan, size);
      const newest = segments[0]?.lastId ?? "";
      if (olderThan === before && newest < below)
        await scan({ afterId: newest, below }, () => indexer.request(organizationId));
      if (changes.length > MANY_CHANGES && segments.length > 0) indexer.request(organizationId);
      const [first] = segments;
      if (!first || found.length >= limit) return found;
      // The changes after this id are all known.
      const knownAfter = changes[MAX_CHANGES] ?? "";
      const known = segments.filter(({ afterId }) => afterId >= knownAfter);
      if (known.length > 0) await compareAll(await candidatesIn(known, changes, below));
      else await scan(rangeOf(first, below));
      olderThan = (known.at(-1) ?? first).afterId;
      if (olderThan === "" || found.length >= limit) return found;
      below = justAfter(olderThan); // the last link of the next segment
      size = MANY_SEGMENTS;
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

    /** Reads the newest marks below an id. */
    async function readChanges(below: string): Promise<string[]> {
      const query = knex("link_search_changes")
        .where({ organization_id: organizationId })
        .where("link_id", "<", below)
        .orderBy("link_id", "desc")
        .limit(MAX_CHANGES + 1);
      const changes = await read<{ link_id: string }>(query.select("link_id"));
      return changes.map(({ link_id }) => link_id);
    }

    function readSegments(olderThan: string, count: number): Promise<Segment[]> {
      const query = segmentsOf(knex, organizationId).limit(count);
      return read<Segment>(query.where("after_id", "<", olderThan));
    }

    function links() {
      return knex("links").where({ organization_id: organizationId });
    }

    async function findMatches(narrow: (query: Knex.QueryBuilder) => void) {
      for (let below = before; found.length < limit; ) {
        const query = links()
          .select(columns)
          .whereNull("deleted_at")
          .where((clause) => matcher.narrow(clause))
          .where("id", "<", below)
          .orderBy("id", "desc")
          .limit(limit - found.length);
        narrow(query);
        const rows = await read<LinkRow>(query);
        const isLast = rows.length < limit - found.length;
        found.push(...rows.filter(matcher.matches));
        if (isLast) return;
        below = rows.at(-1)?.id as string;
      }
    }

    async function compareAll(parts: (string[] | Range)[]) {
      for (const part of parts) {
        if (found.length >= limit) return;
        if (Array.isArray(part)) await compare(part);
        else await scan(part);
      }
    }

    async function compare(ids: string[]) {
      for (let start = 0; start < ids.length && found.length < limit; start += MAX_IDS) {
        await findMatches((query) => query.whereIn("id", ids.slice(start, start + MAX_IDS)));
      }
    }

    /** Reads the links of a range without an index. Calls `onLong` if that takes more than one step. */
    async function scan({ afterId, below }: Range, onLong?: () => void): Promise<void> {
      for (let upper = below; ; ) {
        const query = links().where("id", ">", afterId).where("id", "<", upper).orderBy("id", "desc");
        const [last] = await read<{ id: string }>(query.offset(SEGMENT_LINKS).limit(1).select("id"));
        const lower = last?.id ?? afterId;
        const to = upper;
        // Before comparing them: a search of many links that are not indexed yet may time out.
        if (last) onLong?.();
        await findMatches((matches) => matches.where("id", ">", lower).where("id", "<", to));
        if (!last || found.length >= limit) return;
        upper = justAfter(lower); // the link at the boundary belongs to the next step
      }
    }
  };
}
