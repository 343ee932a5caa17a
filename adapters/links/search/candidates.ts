import type { Knex } from "knex";
import type { LinkFilter } from "../../../resources/links/types.ts";
import type { LinkSearchGramsRow } from "../../database/link-tables.ts";
import { gramsOf, tagGram } from "./grams.ts";
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

type Read = <Row>(query: Knex.QueryBuilder) => Promise<Row[]>;

/** Creates the look-up for one search. */
export function createCandidates(knex: Knex, read: Read, { search, tag }: LinkFilter): Candidates {
  const grams = [
    ...(search === undefined ? [] : gramsOf(search)),
    ...(tag === undefined ? [] : [tagGram(tag)]),
  ];
  const buckets = [...new Set(grams.map(bucketOf))];

  return async (segments, changed, before) => {
    const rows = await readGrams(segments);
    const listsBySegment = new Map<string, Postings>();
    for (const { id } of segments) listsBySegment.set(id, findIn(rows.get(id)));
    const linkIds = await readLinkIds(segments, listsBySegment);
    const parts: (string[] | Range)[] = [];
    for (const segment of segments) {
      const { id, afterId, lastId } = segment;
      const below = lastId < before ? justAfter(lastId) : before;
      const postings = listsBySegment.get(id);
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

  /** Reads the buckets of the grams, by segment. */
  async function readGrams(segments: Segment[]): Promise<Map<string, Map<number, Uint8Array>>> {
    const result = new Map<string, Map<number, Uint8Array>>();
    if (buckets.length === 0) return result;
    const query = knex("link_search_grams")
      .whereIn(
        "segment_id",
        segments.map(({ id }) => id),
      )
      .whereIn("bucket", buckets)
      .select("segment_id", "bucket", "grams");
    for (const row of await read<LinkSearchGramsRow>(query)) {
      const ofSegment = result.get(row.segment_id) ?? new Map<number, Uint8Array>();
      result.set(row.segment_id, ofSegment.set(row.bucket, row.grams));
    }
    return result;
  }

  /** Intersects the lists of the grams. "many" if a bucket is missing, because its segment was replaced meanwhile. */
  function findIn(bucketsOfSegment: Map<number, Uint8Array> | undefined): Postings {
    if (!bucketsOfSegment || bucketsOfSegment.size < buckets.length) return "many";
    return intersect(
      grams.map((gram) => findPostings(bucketsOfSegment.get(bucketOf(gram)) as Uint8Array, gram)),
    );
  }

  /** Reads the ids of the links in the segments that list candidates. */
  async function readLinkIds(
    segments: Segment[],
    lists: Map<string, Postings>,
  ): Promise<Map<string, string[]>> {
    const needed = segments
      .map(({ id }) => id)
      .filter((id) => Array.isArray(lists.get(id)) && lists.get(id)?.length);
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
