import { z } from "zod";
import type { AuditEntry, AuditFilter } from "../../adapters/events/audit-log.ts";
import type { ChainHead } from "../../adapters/events/chain-record.ts";
import type { Storage } from "../../adapters/index.ts";
import { MANAGERS } from "../../resources/access/scopes.ts";
import { toPublicData } from "../../resources/events/public-data.ts";
import { cellsOf, csvHeader, exportName, toCsv } from "../csv.ts";
import { type AuditQuery, auditQuery, filterOf } from "./audit-query.ts";
import { summaryOf } from "./audit-sentences.ts";
import { type CsvFile, type OrganizationRequest, onOrganization } from "./operation.ts";
import { timestamp } from "./schemas.ts";

const PATH = "/dashboard/organizations/{id}/audit";
// Entries have up to 100 KB. A page ends when the data of its entries have as much as a page of links.
const PAGE_BYTES = 256 * 1024;
// A part of an export takes about 3 ms to read and format.
const CSV_PART = { limit: 25, maxBytes: 32 * 1024 };
// All exports take turns.
const EXPORTS = "exports";

/** Its fields are also the columns of an export. */
const entrySchema = z
  .object({
    created_at: timestamp,
    actor: z.string().describe("The ID of the user or client, or `operator` or `system`."),
    actor_name: z.string().nullable(),
    via: z.string().nullable().describe("The ID of the app that acted for the user."),
    via_name: z.string().nullable(),
    address: z.string().nullable().describe("The IP address."),
    type: z.string().describe("What happened, such as `member.added`."),
    summary: z.string().describe("The same in words, as the rest of a sentence that begins with the actor."),
    subject: z.string().nullable().describe("The ID of what it happened to."),
    data: z.record(z.string(), z.unknown()),
    id: z.string(),
    seq: z
      .int()
      .nullable()
      .describe("The sequence number, from 1. It and the next fields are `null` for a few seconds."),
    previous_hash: z.string().nullable(),
    hash: z.string().nullable().describe("The SHA-256 of `previous_hash`, a line feed and `record`."),
    record: z.string().nullable().describe("The entry as it was stored."),
  })
  .meta({ title: "AuditEntry" });
const COLUMNS = Object.keys(entrySchema.shape);

type LogRequest = Pick<OrganizationRequest, "storage" | "urls" | "cursors" | "enqueueExport"> & {
  organization: { id: string };
};

export const listAuditEntries = onOrganization({
  at: `GET ${PATH}`,
  summary: "List the entries of the audit log",
  description: "Returns the newest first, and the head of the log, with which later exports are verified.",
  roles: MANAGERS,
  query: auditQuery,
  output: z.object({
    data: z.array(entrySchema),
    next_cursor: z.string().nullable().describe("The cursor of the next page; null on the last page."),
    head: z.object({ seq: z.int(), hash: z.string() }).nullable().describe("The last entry."),
  }),
  async run(request) {
    const { entries, nextCursor, head } = await readAuditLog(request, request.input);
    return { data: entries.map(toEntryView), next_cursor: nextCursor, head: head ?? null };
  },
});

export const exportAuditLog = onOrganization({
  at: `GET ${PATH}.csv`,
  summary: "Export the audit log",
  description: "The export is recorded in the log itself.",
  roles: MANAGERS,
  query: auditQuery.omit({ limit: true, cursor: true }),
  csv: "The entries, newest first, as CSV with the fields of the list.",
  events: ["audit_log.exported"],
  async run(request): Promise<CsvFile> {
    const { storage, organization, actor, input } = request;
    const filter = await resolveFilter(request, input);
    await storage.audit.recordExport(organization.id, actor, filter);
    const head = await storage.audit.head(organization.id);
    return {
      name: exportName(organization.name, "audit-log"),
      parts: csvOf(request, filter, head?.seq ?? 0),
    };
  },
});

/** Reads a page of the log. Throws Problem 422 for a cursor of another list. */
export async function readAuditLog(
  request: LogRequest,
  { limit, cursor, ...query }: AuditQuery,
  continues?: Part["continues"],
) {
  const { storage, organization, cursors } = request;
  const filter = await resolveFilter(request, query);
  // First, so that all entries are in the chain.
  const head: ChainHead | undefined = await storage.audit.head(organization.id);
  const scope = `${organization.id} audit ${JSON.stringify(filter)}`;
  const before = cursor === undefined ? undefined : cursors?.read(cursor, scope);
  const part = { limit, maxBytes: PAGE_BYTES, before, continues };
  const { entries, lines, end } = await readPart(request, filter, part);
  const nextCursor = end === undefined ? null : (cursors?.write(end, scope) ?? null);
  return { entries, lines, nextCursor, head };
}

/** Resolves only usernames of actors in the organization's log, so that those of others say nothing. */
async function resolveFilter(
  { storage, organization }: LogRequest,
  { actor, ...query }: Partial<AuditQuery>,
): Promise<AuditFilter> {
  const filter = filterOf(query);
  if (!actor) return filter;
  const account = await storage.accounts.findByUsername(actor);
  const [entry] = account ? await storage.audit.list(organization.id, { actor: account.id }, 1) : [];
  return { ...filter, actor: entry && account ? account.id : actor };
}

type Part = Parameters<Storage["audit"]["page"]>[2];

async function readPart({ storage, urls, organization }: LogRequest, filter: AuditFilter, part: Part) {
  const { entries, ...page } = await storage.audit.page(organization.id, filter, part);
  const shown = entries.map((entry): AuditEntry => ({ ...entry, data: toPublicData(entry, urls.short) }));
  return { entries: shown, ...page };
}

/** Formats the entries up to the head, so that the export is a complete part of the chain. */
async function* csvOf(request: LogRequest, filter: AuditFilter, headSeq: number): AsyncGenerator<string> {
  yield csvHeader(COLUMNS);
  let before: string | undefined;
  const formatPart = async () => {
    const { entries, end } = await readPart(request, filter, { ...CSV_PART, before });
    before = end;
    const rows = entries.map(toEntryView).filter(({ seq }) => seq !== null && seq <= headSeq);
    return toCsv(rows.map((row) => cellsOf(COLUMNS, row)));
  };
  do yield request.enqueueExport ? await request.enqueueExport(EXPORTS, formatPart) : await formatPart();
  while (before !== undefined);
}

/** Returns an entry as the list and the export have it; its data must be in the public form. */
function toEntryView(entry: AuditEntry) {
  const { at, previousHash: previous_hash, names, ...rest } = entry;
  return {
    ...rest,
    created_at: new Date(at).toISOString(),
    actor_name: names.get(rest.actor) ?? null,
    via_name: rest.via === null ? null : (names.get(rest.via) ?? null),
    summary: summaryOf(entry),
    previous_hash,
  };
}
