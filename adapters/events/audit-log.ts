import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import type { Database } from "../database/index.ts";
import type { EventRow } from "../database/tables/events.ts";
import { type AuditChain, firstOf } from "./audit-chain.ts";
import { type ChainHead, GENESIS, RECORD_COLUMNS, type RecordedRow, recordOf } from "./chain-record.ts";
import type { Outbox } from "./outbox.ts";
import type { LogHead } from "./verify-chain.ts";

type StoredColumn = "id" | "type" | "actor" | "via" | "address" | "subject" | "seq" | "hash";
/**
 * An entry of the audit log. `at` is epoch milliseconds, `actor` the ID of the user or client, or `operator` or `system`.
 * `seq` is its place in the log. `seq`, `hash` and `previousHash` are null until the entry is chained.
 */
export type AuditEntry = Pick<EventRow, StoredColumn> & {
  at: number;
  data: Record<string, unknown>;
  previousHash: string | null;
  /** The JSON text that the hash covers, together with the previous hash. Null until the entry is chained. */
  record: string | null;
  /** The names of the users and clients in the entry, by ID, except deleted ones. */
  names: ReadonlyMap<string, string>;
};

/** Entries must match every given filter. `from` is inclusive, `to` exclusive. */
export type AuditFilter = {
  types?: readonly string[];
  actor?: string;
  /** The ID of a client that acted for a user or on its own. */
  client?: string;
  from?: number;
  to?: number;
  /** The IDs of the newest and the oldest entry, as in `evt_2..evt_1`. */
  part?: string;
};

/** What the rule that combines entries may read. `data` is empty, except of updated links. */
export type EntryOutline = Pick<AuditEntry, "type" | "actor" | "via" | "address" | "at" | "data">;

type Page = {
  limit: number;
  maxBytes: number;
  /** The position after which the page begins: an `end`. */
  before: string | undefined;
  /** Returns whether an entry is combined with the next newer one. */
  continues?: ((newer: EntryOutline, older: EntryOutline) => boolean) | undefined;
};

/** The entries that a page reads, each the newest of a line; by its ID, the IDs of all entries of the line. */
export type AuditPage = { entries: AuditEntry[]; lines: Lines; end: string | undefined };
export type Lines = ReadonlyMap<string, readonly { id: string }[]>;

// Fewer lines would hide more than they save.
const MIN_COMBINED = 3;
// More than one request changes. A program may create links all year, so a page ends after so many entries.
const MAX_READ = 2000;
const PART = 200;

export function createAuditStore({ knex }: Database, outbox: Outbox, chain: AuditChain) {
  /** Selects entries, newest first; `before` is the ID of the previous page's last entry. */
  function select(
    organizationId: string,
    { types, actor, client, from, to, part }: AuditFilter,
    limit: number,
    before?: string,
  ) {
    const query = knex("events as e")
      .where({ "e.organization_id": organizationId, "e.audited": true })
      .orderBy("e.id", "desc")
      .limit(limit);
    if (before) query.where("e.id", "<", before);
    if (types) query.whereIn("e.type", types);
    if (actor) query.where("e.actor", actor);
    if (client) query.where((either) => either.where("e.via", client).orWhere("e.actor", client));
    if (from !== undefined) query.where("e.created_at", ">=", from);
    if (to !== undefined) query.where("e.created_at", "<", to);
    if (part) query.whereBetween("e.id", part.split("..").toReversed() as [string, string]);
    return query;
  }

  const OUTLINE = [
    ...["type", "actor", "via", "address", "id"].map((column) => `e.${column}`),
    "e.created_at as at",
    knex.raw("octet_length(e.data) as bytes"),
    knex.raw("case when e.type = 'link.updated' then e.data else '{}' end as data"),
  ];

  async function read(query: Knex.QueryBuilder): Promise<AuditEntry[]> {
    query
      .leftJoin("events as p", (previous) =>
        previous.on("p.organization_id", "e.organization_id").on("p.seq", knex.raw("e.seq - 1")),
      )
      .leftJoin("audit_chains as c", (purged) =>
        purged.on("c.organization_id", "e.organization_id").on("c.purged_seq", knex.raw("e.seq - 1")),
      );
    const rows: Row[] = await query.select(
      ...[...RECORD_COLUMNS, "seq", "hash"].map((column) => `e.${column}`),
      { previousHash: "p.hash", purgedHash: "c.purged_hash" },
    );
    const entries = rows.map(toEntry);
    const names = await findNames(knex, entries.flatMap(namedIdsOf));
    return entries.map((entry) => ({ ...entry, names }));
  }

  return {
    /** Lists entries, newest first. */
    list: (organizationId: string, filter: AuditFilter, limit: number): Promise<AuditEntry[]> =>
      read(select(organizationId, filter, limit)),

    /**
     * Lists entries whose data has up to `maxBytes` together, at least one: on SQLite, reading them occupies the event
     * loop. The data of entries that were combined with a newer one isn't read.
     */
    async page(
      organizationId: string,
      filter: AuditFilter,
      { limit, maxBytes, before, continues }: Page,
    ): Promise<AuditPage> {
      const size = continues ? PART : limit + 1;
      const runs: Run[] = [];
      let part: Outline[] = [];
      let found: Run[] = [];
      for (let count = 0; ; ) {
        const rows = select(organizationId, filter, size, part.at(-1)?.id ?? before).select(OUTLINE);
        part = (await rows).map((row) => ({ ...row, data: JSON.parse(row.data) }));
        for (const row of part) {
          const run = runs.at(-1);
          const last = run?.at(-1);
          if (run && last && continues?.(last, row)) run.push(row);
          else runs.push([row]);
        }
        count += part.length;
        // Older entries may continue the last run, which the next page has then.
        const ended = part.length < size ? [] : linesOf(runs.slice(0, -1));
        found = ended.length > 0 ? ended : linesOf(runs);
        if (part.length < size || count >= MAX_READ || ended.length >= limit) break;
      }
      const lines = firstOf(found.slice(0, limit), maxBytes, ([{ bytes }]) => bytes);
      const ids = lines.map(([{ id }]) => id);
      const entries =
        ids.length > 0 ? await read(select(organizationId, {}, limit).whereIn("e.id", ids)) : [];
      // All of them may have been purged meanwhile, and then all older ones, too.
      const hasMore = entries.length > 0 && (found.length > lines.length || part.length === size);
      const end = hasMore ? lines.at(-1)?.at(-1)?.id : undefined;
      return { entries, lines: new Map(lines.map((line) => [line[0].id, line])), end };
    },

    /** Chains the entries that wait, and returns the last one. Undefined if the log is empty. */
    async head(organization_id: string): Promise<ChainHead | undefined> {
      await chain.append(organization_id);
      return knex("audit_chains").where({ organization_id }).where("seq", ">", 0).first("seq", "hash");
    },

    /** Chains the entries that wait, and returns the last entry of one log, or of all that aren't empty. */
    async heads(organizationId?: string): Promise<LogHead[]> {
      await chain.append(organizationId);
      return knex("audit_chains")
        .where(organizationId === undefined ? {} : { organization_id: organizationId })
        .where("seq", ">", 0)
        .orderBy("organization_id")
        .select("organization_id", "seq", "hash");
    },

    recordExport: (
      organizationId: string,
      actor: Actor,
      { types, actor: actor_id, client, from, to, part }: AuditFilter,
    ): Promise<void> =>
      outbox.change(actor, ({ record }) => {
        const data = {
          ...(types && { types }),
          ...(actor_id && { actor: actor_id }),
          ...(client && { client_id: client }),
          ...(from !== undefined && { from: new Date(from).toISOString() }),
          ...(to !== undefined && { to: new Date(to).toISOString() }),
          ...(part && { part }),
        };
        return record({ organizationId, type: "audit_log.exported", subject: null, data });
      }),
  };
}

type Outline = EntryOutline & { id: string; bytes: number };
type Run = [Outline, ...Outline[]];

function linesOf(runs: Run[]): Run[] {
  return runs.flatMap((run) => (run.length < MIN_COMBINED ? run.map((one): Run => [one]) : [run]));
}

type Row = RecordedRow &
  Pick<EventRow, "seq" | "hash"> & { previousHash: string | null; purgedHash: string | null };

function toEntry(row: Row): Omit<AuditEntry, "names"> {
  const { id, type, actor, via, address, subject, seq, hash, previousHash, purgedHash } = row;
  return {
    ...{ id, type, actor, via, address, subject, seq, hash },
    at: row.created_at,
    data: JSON.parse(row.data),
    previousHash: previousHash ?? purgedHash ?? (seq === 1 ? GENESIS : null),
    record: seq === null ? null : recordOf(seq, row),
  };
}

function namedIdsOf({ actor, via, data }: Omit<AuditEntry, "names">): string[] {
  const ids = [actor, via, data.user_id, data.client_id, data.reset_link_created_by];
  return ids.filter((id) => typeof id === "string");
}

async function findNames(knex: Knex, ids: string[]): Promise<Map<string, string>> {
  const unique = [...new Set(ids)];
  const [users, clients]: { id: string; name: string }[][] = await Promise.all([
    knex("users").whereIn("id", unique).select({ id: "id", name: "username" }),
    knex("clients")
      .join("organizations", "organizations.id", "clients.organization_id")
      .whereIn("clients.id", unique)
      .select({ id: "clients.id", name: "organizations.name" }),
  ]);
  return new Map([...(users ?? []), ...(clients ?? [])].map(({ id, name }) => [id, name]));
}
