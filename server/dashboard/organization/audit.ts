import { Readable } from "node:stream";
import { stringify } from "csv-stringify";
import type { Context } from "koa";
import type { AuditEntry, AuditFilter, ChainHead } from "../../../adapters/events/audit-log.ts";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { createCursors } from "../../../resources/http/cursor.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { retentionOf } from "../../retention.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { CSV_COLUMNS, toEntryView } from "./audit-entry.ts";
import { auditPage } from "./audit-page.ts";
import { AUDITED_TYPES, type AuditQuery, readAuditQuery } from "./audit-query.ts";

const PATH = `${ORGANIZATION}/audit`;
const CSV_PAGE = 500;

/** The audit log as a page, JSON and CSV. */
export const audit: RouteModule = (router, { storage, urls, keys, allow }) => {
  const cursors = createCursors(keys.signing);
  const managers = allow(...MANAGERS);

  const findActorId = async (actor: string) => (await storage.accounts.findByUsername(actor))?.id ?? actor;

  /** Reads a page of entries with their data in the public form. */
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
    const entries = found.slice(0, limit);
    const nextCursor = found.length > limit ? cursors.write(entries.at(-1)?.id as string, scope) : null;
    return { entries, nextCursor, head };
  }

  async function exportCsv(ctx: Context, filter: AuditFilter) {
    const { id } = membershipOf(ctx);
    await storage.audit.recordExport(id, signedInUserOf(ctx).actor, filter);
    const head = await storage.audit.head(id);
    ctx.type = "text/csv";
    ctx.attachment(`audit-${id}.csv`);
    // Without the escape, a spreadsheet would run a cell that starts like a formula.
    const csv = stringify({ header: true, columns: CSV_COLUMNS, escape_formulas: true, bom: true });
    const rows = Readable.from(readRows(id, filter, head?.seq ?? 0));
    rows.on("error", (error) => csv.destroy(error));
    ctx.body = rows.pipe(csv);
  }

  /** Reads the entries up to the head, so that the export is a complete part of the chain. */
  async function* readRows(id: string, filter: AuditFilter, headSeq: number): AsyncGenerator<object> {
    let before: string | undefined;
    for (;;) {
      const entries = await list(id, filter, CSV_PAGE, before);
      for (const { data, ...entry } of entries.map(toEntryView)) {
        if (entry.seq !== null && entry.seq <= headSeq) yield { ...entry, data: JSON.stringify(data) };
      }
      if (entries.length < CSV_PAGE) return;
      before = entries.at(-1)?.id;
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

type Page = { entries: AuditEntry[]; nextCursor: string | null; head: ChainHead | undefined };

function showAuditPage(ctx: Context, page: Page): void {
  const query = ctx.query as Record<string, string>;
  const body = auditPage({ path: ctx.path, query, types: AUDITED_TYPES, ...page });
  const kept = retentionOf(membershipOf(ctx).plan);
  const intro = `Sign-ins and changes to credentials, plan, members, authorizations and links. On your plan, new entries are kept for ${kept}.`;
  showPage(ctx, { title: "Audit log", intro, section: "audit" }, body);
}
