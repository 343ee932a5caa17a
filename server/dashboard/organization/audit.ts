import type { Context } from "koa";
import type { AuditEntry, AuditFilter, ChainHead } from "../../../adapters/events/audit-log.ts";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { createCursors } from "../../../resources/http/pagination.ts";
import { createTurns } from "../../../resources/turns.ts";
import { sendCsv, toCsv } from "../../csv.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { retentionOf } from "../../settings/lifetimes.ts";
import { copyable, field, linkButton, select, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, table } from "../../ui/table.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { AUDITED_TYPES, type AuditQuery, CATEGORY_OPTIONS, readAuditQuery } from "./audit-query.ts";
import { actorNameOf, summaryOf } from "./audit-sentences.ts";

type Page = { entries: AuditEntry[]; nextCursor: string | null; head: ChainHead | undefined };

const COLUMNS: Columns<AuditEntry> = {
  Time: ({ at }) => time(at),
  Actor: (entry) => html`<bdi>${actorNameOf(entry)}</bdi>`,
  Event: summaryOf,
  "IP address": ({ address }) => address ?? "–",
};

const CSV_COLUMNS =
  "created_at actor actor_name via via_name address type summary subject data id seq previous_hash hash record".split(
    " ",
  );

const PATH = `${ORGANIZATION}/audit`;
// Entries have up to 100 KB. As a page of links, a page ends when its records have so much.
const PAGE_LENGTH = 256 * 1024;
// A part of an export takes about 3 ms to read and format.
const CSV_PART_LENGTH = 64 * 1024;
const CSV_PART = { min: 10, max: 25 };
// All exports take turns.
const EXPORTS = "exports";

export const audit: RouteModule = (router, { storage, urls, keys, allow }) => {
  const cursors = createCursors(keys.signing);
  const managers = allow(...MANAGERS);
  const inTurn = createTurns();

  const findActorId = async (actor: string) => (await storage.accounts.findByUsername(actor))?.id ?? actor;

  async function list(id: string, filter: AuditFilter, limit: number, before?: string) {
    const entries = await storage.audit.list(id, filter, limit, before);
    return entries.map((entry): AuditEntry => ({ ...entry, data: toPublicData(entry, urls.short) }));
  }

  async function readPage(id: string, { filter, limit, cursor }: AuditQuery) {
    // First, so that all entries are in the chain.
    const head = await storage.audit.head(id);
    const scope = `${id} audit ${JSON.stringify(filter)}`;
    const before = cursor === undefined ? undefined : cursors.read(cursor, scope);
    const found = await list(id, filter, limit + 1, before);
    const entries: AuditEntry[] = [];
    let length = 0;
    for (const entry of found.slice(0, limit)) {
      if (length >= PAGE_LENGTH) break;
      entries.push(entry);
      length += entry.record?.length ?? 0;
    }
    const nextCursor =
      found.length > entries.length ? cursors.write(entries.at(-1)?.id as string, scope) : null;
    return { entries, nextCursor, head };
  }

  async function exportCsv(ctx: Context, filter: AuditFilter) {
    const { id } = membershipOf(ctx);
    await storage.audit.recordExport(id, signedInUserOf(ctx).actor, filter);
    const head = await storage.audit.head(id);
    sendCsv(ctx, `audit-${id}`, csvOf(id, filter, head?.seq ?? 0));
  }

  /** Formats the entries up to the head, so that the export is a complete part of the chain. */
  async function* csvOf(id: string, filter: AuditFilter, headSeq: number): AsyncGenerator<string> {
    yield toCsv([CSV_COLUMNS], { bom: true });
    let before: string | undefined;
    let count = CSV_PART.min;
    for (let isLast = false; !isLast; ) {
      yield await inTurn(EXPORTS, async () => {
        const entries = await list(id, filter, count, before);
        isLast = entries.length < count;
        before = entries.at(-1)?.id;
        const rows = entries.map(toEntryView).filter(({ seq }) => seq !== null && seq <= headSeq);
        const text = toCsv(
          rows.map((row) => ({ ...row, data: JSON.stringify(row.data) })),
          { columns: CSV_COLUMNS },
        );
        const fitting = Math.ceil((count * CSV_PART_LENGTH) / (text.length + 1));
        count = Math.min(Math.max(CSV_PART.min, fitting), CSV_PART.max);
        return text;
      });
    }
  }

  router.get(PATH, managers, async (ctx) => {
    const query = await readAuditQuery(ctx.query, findActorId);
    if (query.format === "csv") return exportCsv(ctx, query.filter);
    const page = await readPage(membershipOf(ctx).id, query);
    if (prefersHtml(ctx)) return showAuditPage(ctx, page);
    ctx.body = { data: page.entries.map(toEntryView), next_cursor: page.nextCursor, head: page.head ?? null };
  });

  router.get(`${PATH}.csv`, managers, async (ctx) => {
    await exportCsv(ctx, (await readAuditQuery(ctx.query, findActorId)).filter);
  });
};

/** Returns an entry as the JSON endpoint and the CSV export show it; its data must be in the public form. */
function toEntryView(entry: AuditEntry) {
  const { id, type, at, actor, via, address, subject, data, names } = entry;
  const { seq, previousHash, hash, record } = entry;
  return {
    id,
    type,
    created_at: new Date(at).toISOString(),
    actor,
    actor_name: names.get(actor) ?? null,
    via,
    via_name: via === null ? null : (names.get(via) ?? null),
    address,
    subject,
    summary: summaryOf(entry),
    data,
    seq,
    previous_hash: previousHash,
    hash,
    record,
  };
}

function showAuditPage(ctx: Context, { entries, nextCursor, head }: Page): void {
  const { path } = ctx;
  const query = ctx.query as Record<string, string>;
  const filter = new URLSearchParams(
    Object.entries(query).filter(([name, value]) => value && !["cursor", "limit", "done"].includes(name)),
  );
  const body = html`${filterForm(path, query)}
${entries.length > 0 ? table("Audit log", COLUMNS, entries) : emptyState("No events found", "No entry matches the filter.")}
${pagination({ path, query, nextCursor })}
${head && proof(head)}`;
  const actions = linkButton(`${path}.csv${filter.size > 0 ? `?${filter}` : ""}`, "Export CSV", "quiet");
  const kept = retentionOf(membershipOf(ctx).plan);
  const intro = `Sign-ins and changes to credentials, plan, members, authorizations and links. On your plan, new entries are kept for ${kept}.`;
  showPage(ctx, { title: "Audit log", intro, section: "audit", actions, body });
}

/** Renders the hash of the last entry, which an auditor keeps to recognize a log that was rewritten. */
function proof({ seq, hash }: ChainHead): Html {
  return html`<section class="panel"><h2>Proof of completeness</h2>
<p>Each entry contains the hash of the one before. Save this hash to prove later that earlier entries weren’t changed. <a href="/docs#audit-log">How to verify an export</a></p>
<p>Entry ${seq.toLocaleString("en")}: ${copyable(hash, "hash")}</p></section>`;
}

function filterForm(path: string, query: Record<string, string>): Html {
  return html`<form method="get" action="${path}" class="row">
${select({
  name: "category",
  label: "Category",
  value: query.category,
  options: [["", "All"], ...CATEGORY_OPTIONS],
})}
${select({
  name: "type",
  label: "Event",
  value: query.type,
  options: [["", "All"], ...AUDITED_TYPES.map((type) => [type, type] as const)],
})}
${field({ name: "actor", label: "Actor", value: query.actor, attributes: html`placeholder="username or ID" autocapitalize="none"` })}
${field({ name: "from", label: "From", type: "date", value: query.from?.slice(0, 10) })}
${field({ name: "to", label: "To", type: "date", value: query.to?.slice(0, 10) })}
<button type="submit">Filter</button>
</form>`;
}
