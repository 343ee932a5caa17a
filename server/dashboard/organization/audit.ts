import type { Context } from "koa";
import type { AuditEntry, AuditFilter } from "../../../adapters/events/audit-log.ts";
import type { Storage } from "../../../adapters/index.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { toPublicData } from "../../../resources/events/public-data.ts";
import { createCursors } from "../../../resources/http/pagination.ts";
import { createWorkQueue } from "../../../resources/work-queue.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { cellsOf, csvHeader, sendCsv, toCsv } from "../../csv.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { showAuditPage } from "./audit-page.ts";
import { type AuditQuery, readAuditQuery } from "./audit-query.ts";
import { appOf, summaryOf } from "./audit-sentences.ts";

const CSV_COLUMNS =
  "created_at actor actor_name via via_name address type summary subject data id seq previous_hash hash record".split(
    " ",
  );

const PATH = `${ORGANIZATION}/audit`;
// Entries have up to 100 KB. A page ends when the data of its entries have as much as a page of links.
const PAGE_BYTES = 256 * 1024;
// A part of an export takes about 3 ms to read and format.
const CSV_PART = { limit: 25, maxBytes: 32 * 1024 };
// All exports take turns.
const EXPORTS = "exports";

export const audit: RouteModule = (router, { storage, urls, keys, allow }) => {
  const cursors = createCursors(keys.signing);
  const managers = allow(...MANAGERS);
  const enqueue = createWorkQueue();

  /** Resolves only usernames of actors in the organization's log, so that those of others say nothing. */
  async function findActorId(organizationId: string, actor: string): Promise<string> {
    const account = await storage.accounts.findByUsername(actor);
    if (!account) return actor;
    const [entry] = await storage.audit.list(organizationId, { actor: account.id }, 1);
    return entry ? account.id : actor;
  }

  const readQuery = (ctx: Context) =>
    readAuditQuery(ctx.query, (actor) => findActorId(membershipOf(ctx).id, actor));

  async function readPart(id: string, filter: AuditFilter, part: Parameters<Storage["audit"]["page"]>[2]) {
    const { entries, hasMore } = await storage.audit.page(id, filter, part);
    const shown = entries.map((entry): AuditEntry => ({ ...entry, data: toPublicData(entry, urls.short) }));
    return { entries: shown, last: hasMore ? entries.at(-1)?.id : undefined };
  }

  async function readPage(id: string, { filter, limit, cursor }: AuditQuery) {
    // First, so that all entries are in the chain.
    const head = await storage.audit.head(id);
    const scope = `${id} audit ${JSON.stringify(filter)}`;
    const before = cursor === undefined ? undefined : cursors.read(cursor, scope);
    const { entries, last } = await readPart(id, filter, { limit, maxBytes: PAGE_BYTES, before });
    return { entries, nextCursor: last === undefined ? null : cursors.write(last, scope), head };
  }

  async function exportCsv(ctx: Context, filter: AuditFilter) {
    const { id } = membershipOf(ctx);
    await storage.audit.recordExport(id, signedInUserOf(ctx).actor, filter);
    const head = await storage.audit.head(id);
    sendCsv(ctx, `audit-${id}`, csvOf(id, filter, head?.seq ?? 0));
  }

  /** Formats the entries up to the head, so that the export is a complete part of the chain. */
  async function* csvOf(id: string, filter: AuditFilter, headSeq: number): AsyncGenerator<string> {
    yield csvHeader(CSV_COLUMNS);
    let before: string | undefined;
    do {
      yield await enqueue(EXPORTS, async () => {
        const { entries, last } = await readPart(id, filter, { ...CSV_PART, before });
        before = last;
        const rows = entries.map(toEntryView).filter(({ seq }) => seq !== null && seq <= headSeq);
        return toCsv(rows.map((row) => cellsOf(CSV_COLUMNS, { ...row, data: JSON.stringify(row.data) })));
      });
    } while (before !== undefined);
  }

  /** Lists the apps that the log can be narrowed to: the authorized ones, the own client, and the chosen one. */
  async function clientOptions(ctx: Context, [entry]: AuditEntry[]): Promise<[id: string, name: string][]> {
    const { id, name } = membershipOf(ctx);
    const chosen = ctx.query.client_id;
    const [apps, own] = await Promise.all([
      storage.grants.listByOrganization(id),
      storage.clients.findByOrganization(id),
    ]);
    const names = new Map<string, string>();
    if (own) names.set(own.clientId, `${name} (client)`);
    for (const app of apps) names.set(app.clientId, describeApp(app).name);
    if (typeof chosen === "string" && chosen && !names.has(chosen))
      names.set(chosen, entry ? appOf(chosen, entry.names) : chosen);
    return [...names];
  }

  router.get(PATH, managers, async (ctx) => {
    const query = await readQuery(ctx);
    if (query.format === "csv") return exportCsv(ctx, query.filter);
    const page = await readPage(membershipOf(ctx).id, query);
    if (prefersHtml(ctx)) return showAuditPage(ctx, page, await clientOptions(ctx, page.entries));
    ctx.body = { data: page.entries.map(toEntryView), next_cursor: page.nextCursor, head: page.head ?? null };
  });

  router.get(`${PATH}.csv`, managers, async (ctx) => {
    await exportCsv(ctx, (await readQuery(ctx)).filter);
  });
};

/** Returns an entry as the JSON endpoint and the CSV export show it; its data must be in the public form. */
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
