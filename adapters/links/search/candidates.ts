import type { Knex } from "knex";
import type { LinkFilter } from "../../../resources/links/types.ts";
import type { LinkSearchGramsRow } from "../../database/link-tables.ts";
import { gramsOf } from "./grams.ts";
import { bucketOf, findPostings, intersect, type Postings } from "./postings.ts";
import type { Segment } from "./segments.ts";

/** The links after an id and below another one. */
export type Range = { afterId: string; below: string };

/**
 * Finds the links of the segments, newest first, that may match the filter: their ids, or ranges of which most may match.
 * @param changed the ids of links that the segments may not have the current text of, newest first
 */
export type Candidates = (
  segments: Segment[],
  changed: string[],
  before: string,
) => Promise<(string[] | Range)[]>;

/** Returns a text after an id and before all later ones, also where a database orders texts by a locale. */
export function justAfter(id: string): string {
  return `${id}0`;
}

/** Returns the range of a segment, or the part of it below an id. */
export function rangeOf({ afterId, lastId }: Segment, before: string): Range {
  return { afterId, below: lastId < before ? justAfter(lastId) : before };
}

type Read = <Row>(query: Knex.QueryBuilder) => Promise<Row[]>;

// A few grams exclude many segments. The others are read where these leave links: their buckets are smaller than the ids
// of a segment.
const FIRST_GRAMS = 6;

/** Creates the look-up for one search. */
export function createCandidates(knex: Knex, read: Read, filter: LinkFilter): Candidates {
  const grams = gramsOf(filter);
  const [first, others] = [grams.slice(0, FIRST_GRAMS), grams.slice(FIRST_GRAMS)];

  return async (segments, changed, before) => {
    const lists = await findPostingsIn(segments);
    const linkIds = await readLinkIds(lists);
    const parts: (string[] | Range)[] = [];
    for (const segment of segments) {
      const { id } = segment;
      const { afterId, below } = rangeOf(segment, before);
      const postings = lists.get(id);
      if (postings === "many") {
        parts.push({ afterId, below });
        continue;
      }
      const ids = linkIds.get(id) ?? [];
      const listed = (postings ?? []).map((position) => ids[position] as string);
      const stale = changed.filter((link) => link > afterId && link < below);
      const candidates = [...new Set([...listed.filter((link) => link < below), ...stale])].sort().reverse();
      const last = parts.at(-1);
      if (Array.isArray(last)) last.push(...candidates);
      else parts.push(candidates);
    }
    return parts;
  };

  /** Returns the links of each segment that have all grams. */
  async function findPostingsIn(segments: Segment[]): Promise<Map<string, Postings>> {
    const ids = segments.map(({ id }) => id);
    const lists = new Map<string, Postings>(ids.map((id) => [id, "many"]));
    await narrow(lists, ids, first);
    // Not empty, or "many".
    const left = ids.filter((id) => lists.get(id)?.length);
    await narrow(lists, left, others);
    return lists;
  }

  /** Intersects the lists of segments with those of further grams. */
  async function narrow(lists: Map<string, Postings>, ids: string[], further: number[]) {
    if (ids.length === 0 || further.length === 0) return;
    const buckets = [...new Set(further.map(bucketOf))];
    const rows = await readBuckets(ids, buckets);
    for (const id of ids) {
      const ofSegment = rows.get(id);
      // A bucket is missing if the segment was replaced meanwhile.
      const found =
        ofSegment?.size === buckets.length
          ? further.map((gram) => findPostings(ofSegment.get(bucketOf(gram)) as Uint8Array, gram))
          : [];
      lists.set(id, found.length > 0 ? intersect([lists.get(id), ...found]) : "many");
    }
  }

  async function readBuckets(
    ids: string[],
    buckets: number[],
  ): Promise<Map<string, Map<number, Uint8Array>>> {
    const query = knex("link_search_grams")
      .whereIn("segment_id", ids)
      .whereIn("bucket", buckets)
      .select("segment_id", "bucket", "grams");
    const result = new Map<string, Map<number, Uint8Array>>();
    for (const row of await read<LinkSearchGramsRow>(query)) {
      const ofSegment = result.get(row.segment_id) ?? new Map<number, Uint8Array>();
      result.set(row.segment_id, ofSegment.set(row.bucket, row.grams));
    }
    return result;
  }

  /** Reads the ids of the links in the segments that list candidates. */
  async function readLinkIds(lists: Map<string, Postings>): Promise<Map<string, string[]>> {
    const needed = [...lists].filter(([, list]) => Array.isArray(list) && list.length > 0).map(([id]) => id);
    const result = new Map<string, string[]>();
    if (needed.length === 0) return result;
    const query = knex("link_search_segments").whereIn("id", needed).select("id", "link_ids");
    for (const row of await read<{ id: string; link_ids: string }>(query)) {
      result.set(row.id, row.link_ids.split(","));
    }
    for (const id of needed) if (!result.has(id)) lists.set(id, "many");
    return result;
  }
}
