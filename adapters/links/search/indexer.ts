import { setTimeout as sleep } from "node:timers/promises";
import { firstIdAt } from "../../crypto/ids.ts";
import { isDuplicate } from "../../database/engine.ts";
import type { Database } from "../../database/index.ts";
import type { Leases } from "../../database/leases.ts";
import type { LinkRow, LinkSearchChangeRow } from "../../database/link-tables.ts";
import { readTags } from "../row.ts";
import { findLarge } from "./large.ts";
import { buildBuckets } from "./postings.ts";
import { removeOrphans, type Segment, segmentsOf, storeSegment } from "./segments.ts";

/** The number of links of a segment. As many of the newest links are searched without an index. */
export const SEGMENT_LINKS = 4096;

/**
 * A segment is indexed again when this many of its links have changed. Until then, a search compares these links, which is
 * cheaper than indexing a segment for each change.
 */
export const MANY_CHANGES = 100;

/** Indexes the links of organizations that have many, in the background. */
export type Indexer = {
  /** Asks to index an organization's links before those of others. */
  request(organizationId: string): void;
  /** Asks to index the links of organizations that have many, unless another process is indexing. */
  requestLarge(): Promise<void>;
  /** Stops after the current segment. */
  stop(): Promise<void>;
  /** Resolves when everything requested so far is indexed. */
  settled(): Promise<void>;
};

// Bounds the work of one segment: a link has up to a few thousand characters.
const SEGMENT_CHARACTERS = 512 * 1024;
const PAGE = 512;
// Between two segments, for other requests.
const PAUSE_MS = 50;
const READ_MS = 5_000;
// A link is committed this long after its id was created at the latest. Its age tells when no earlier id can follow.
const SETTLED_AFTER_MS = 5 * 60_000;
const MARKS_PER_READ = 5000;
const LEASE = "link-search";
const LEASE_MS = 30_000;

type IndexedRow = Pick<LinkRow, "id" | "url" | "slug" | "title" | "tags" | "archived" | "deleted_at">;
const COLUMNS = ["id", "url", "slug", "title", "tags", "archived", "deleted_at"] as const;

/** Creates the indexer of this process. One process at a time indexes. */
export function createIndexer(database: Database, leases: Leases): Indexer {
  const { knex, readAside } = database;
  const findCandidates = findLarge(database, SEGMENT_LINKS);
  let queue: string[] = [];
  let running: Promise<void> | undefined;
  let isStopped = false;

  async function run() {
    for (let next = queue.shift(); next !== undefined && !isStopped; next = queue.shift()) {
      // A failure leaves links unindexed, which makes a search slower, never wrong. It is requested again.
      await index(next).catch(() => {});
    }
    await leases.release(LEASE).catch(() => {});
  }

  async function index(organizationId: string) {
    const segments = await readAside<Segment>(segmentsOf(knex, organizationId), READ_MS);
    const outdated = await findOutdated(organizationId, segments.toReversed());
    let range = await nextRange(organizationId, segments[0]?.lastId ?? "");
    if ((outdated.length === 0 && !range) || !(await mayIndex(organizationId))) return;
    await removeOrphans(database, organizationId);
    for (const segment of outdated) {
      if (!(await mayIndex(organizationId))) return;
      await storeLinks(organizationId, segment, segment);
      await sleep(PAUSE_MS);
    }
    while (range && (await mayIndex(organizationId))) {
      range = await addSegment(organizationId, range);
      await sleep(PAUSE_MS);
    }
  }

  const holdLease = async () => !isStopped && (await leases.acquire(LEASE, LEASE_MS));

  async function mayIndex(organizationId: string): Promise<boolean> {
    const organization = knex("organizations").where({ id: organizationId }).whereNull("deleted_at");
    return (await holdLease()) && (await organization.first("id")) !== undefined;
  }

  function start() {
    running ??= run().finally(() => {
      running = undefined;
      // Requested since the queue was found empty.
      if (queue.length > 0 && !isStopped) start();
    });
  }

  /** Returns the segments with many changed links. @param segments the oldest links first */
  async function findOutdated(organizationId: string, segments: Segment[]): Promise<Segment[]> {
    const counts = new Map<Segment, number>();
    let position = 0;
    for (let afterId = ""; ; ) {
      const marks = await readChanges(organizationId, { afterId }, MARKS_PER_READ);
      for (const { link_id } of marks) {
        while (position < segments.length && (segments[position] as Segment).lastId < link_id) position++;
        const segment = segments[position];
        if (!segment) break;
        counts.set(segment, (counts.get(segment) ?? 0) + 1);
      }
      const last = marks.at(-1);
      if (!last || marks.length < MARKS_PER_READ || position === segments.length) break;
      afterId = last.link_id;
    }
    return segments.filter((segment) => (counts.get(segment) ?? 0) >= MANY_CHANGES);
  }

  function readChanges(
    organizationId: string,
    { afterId, lastId }: { afterId: string; lastId?: string },
    limit: number,
  ): Promise<LinkSearchChangeRow[]> {
    const query = knex("link_search_changes")
      .where({ organization_id: organizationId })
      .where("link_id", ">", afterId)
      .orderBy("link_id")
      .limit(limit);
    if (lastId !== undefined) query.where("link_id", "<=", lastId);
    return readAside<LinkSearchChangeRow>(query, READ_MS);
  }

  /** Returns the range of the links after an id that would fill a segment, or undefined if there are too few. */
  async function nextRange(organizationId: string, afterId: string): Promise<Range | undefined> {
    const settled = firstIdAt("lnk", Date.now() - SETTLED_AFTER_MS);
    const query = linksIn(organizationId, { afterId, lastId: settled })
      .offset(SEGMENT_LINKS - 1)
      .limit(1);
    const [last] = await readAside<{ id: string }>(query.select("id"), READ_MS);
    return last && { afterId, lastId: last.id };
  }

  /** Indexes the links of a range, or as many as have not too much text. Resolves to the next range. */
  async function addSegment(organizationId: string, range: Range): Promise<Range | undefined> {
    try {
      const lastId = await storeLinks(organizationId, range);
      return await nextRange(organizationId, lastId);
    } catch (error) {
      if (isDuplicate(error)) return undefined; // another process was faster
      throw error;
    }
  }

  /** Stores the links of a range, or if it replaces no segment, as many as have not too much text. Resolves to the last id. */
  async function storeLinks(organizationId: string, range: Range, replaced?: Segment): Promise<string> {
    // Before the links: a segment may contain a change that is still marked, but not the reverse.
    const changes = await readChanges(organizationId, range, SEGMENT_LINKS);
    const rows = await readLinks(organizationId, range, replaced ? Infinity : SEGMENT_CHARACTERS);
    const lastId = replaced?.lastId ?? rows.at(-1)?.id ?? range.lastId;
    const links = rows.map((row) => ({
      ...row,
      tags: readTags(row.tags),
      archived: Boolean(row.archived),
      isDeleted: row.deleted_at !== null,
    }));
    await storeSegment(database, {
      afterId: range.afterId,
      lastId,
      organizationId,
      linkIds: rows.map(({ id }) => id),
      buckets: await buildBuckets(links),
      changes: changes.filter(({ link_id }) => link_id <= lastId),
      replaced,
    });
    return lastId;
  }

  /** Reads the links of a range in small pages. */
  async function readLinks(organizationId: string, range: Range, characters: number): Promise<IndexedRow[]> {
    const rows: IndexedRow[] = [];
    for (let length = 0; length <= characters; ) {
      const rest = { ...range, afterId: rows.at(-1)?.id ?? range.afterId };
      const query = linksIn(organizationId, rest)
        .limit(PAGE)
        .select(...COLUMNS);
      const page = await readAside<IndexedRow>(query, READ_MS);
      rows.push(...page);
      if (page.length < PAGE) break;
      length += textLength(page);
    }
    return rows;
  }

  function linksIn(organizationId: string, { afterId, lastId }: Range) {
    return knex("links")
      .where({ organization_id: organizationId })
      .where("id", ">", afterId)
      .where("id", "<=", lastId)
      .orderBy("id");
  }

  return {
    request(organizationId) {
      if (isStopped) return;
      queue = [organizationId, ...queue.filter((id) => id !== organizationId)];
      start();
    },
    async requestLarge() {
      if (running || !(await holdLease())) return;
      try {
        const found = await findCandidates();
        queue.push(...found.filter((id) => !queue.includes(id)));
      } finally {
        if (!isStopped) start();
      }
    },
    async stop() {
      isStopped = true;
      await running;
    },
    async settled() {
      while (running) await running;
    },
  };
}

type Range = Pick<Segment, "afterId" | "lastId">;

function textLength(rows: IndexedRow[]): number {
  return rows.reduce((sum, { url, title }) => sum + url.length + (title?.length ?? 0), 0);
}
