import type { Context } from "koa";
import type { AuditEntry, EntryOutline, Lines } from "../../../adapters/events/audit-log.ts";
import type { ChainHead } from "../../../adapters/events/chain-record.ts";
import type { Storage } from "../../../adapters/index.ts";
import { describeApp } from "../../clients/app-identity.ts";
import { exportAuditLog, listAuditEntries, readAuditLog } from "../../operations/audit-log.ts";
import { type AuditQuery, CATEGORY_OPTIONS, EVENT_GROUPS, eventName } from "../../operations/audit-query.ts";
import { actorNameOf, appOf, groupVerbOf, summaryOf } from "../../operations/audit-sentences.ts";
import { auditRetentionOf } from "../../settings/audit-retention.ts";
import { copyable, field, linkButton, select, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, emptyState, pagination, pathWith, table } from "../../ui/table.ts";
import { membershipOf } from "../access.ts";
import { addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteModule } from "../route.ts";

type AuditPage = Awaited<ReturnType<typeof readAuditLog>>;
/** The apps that the log can be narrowed to. */
type Clients = readonly (readonly [id: string, name: string])[];

// Combined entries have one time, so they are close to each other.
const MAX_DISTANCE_MS = 60 * 60 * 1000;

export const audit: RouteModule = (router, options) => {
  addReading(router, options, listAuditEntries, async (ctx, query) => {
    // A part of the log shows what was combined.
    const continues = query.part ? undefined : continuesAction;
    const request = { ...options, organization: membershipOf(ctx) };
    const page = await readAuditLog(request, query as AuditQuery, continues);
    showAuditPage(ctx, page, await clientOptions(ctx, options.storage, page.entries));
  });
  addReading(router, options, exportAuditLog);
};

/** Lists the apps that the log can be narrowed to: the authorized ones, the own client, and the chosen one. */
async function clientOptions(
  ctx: Context,
  storage: Storage,
  [entry]: AuditEntry[],
): Promise<[id: string, name: string][]> {
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

function showAuditPage(ctx: Context, page: AuditPage, clients: Clients): void {
  const { entries, lines, nextCursor, head } = page;
  const { path } = ctx;
  const query = ctx.query as Record<string, string>;
  const body = html`${filterForm(path, query, clients)}
${entries.length > 0 ? table("Audit log", columnsOf(path, filterOf(query), lines), entries) : emptyState("No events found", "No entry matches the filter.")}
${pagination({ path, query, nextCursor })}
${head && proof(head)}`;
  const actions = linkButton(pathWith(`${path}.csv`, filterOf(query)), "Export CSV", "quiet");
  const kept = auditRetentionOf(membershipOf(ctx).plan);
  const intro = `Sign-ins and changes to credentials, plan, members, authorizations and links. On your plan, new entries are kept for ${kept}.`;
  showPage(ctx, { title: "Audit log", intro, section: "audit", actions, body });
}

/** Returns the parameters that narrow the log, without those of the page. */
function filterOf({ cursor: _, limit: __, done: ___, ...filter }: Record<string, string>) {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
}

/** Returns whether an older entry is part of what the next newer one did: changes of many links by one actor. */
export function continuesAction(newer: EntryOutline, older: EntryOutline): boolean {
  return (
    groupVerbOf(older) !== undefined &&
    groupVerbOf(older) === groupVerbOf(newer) &&
    newer.at - older.at <= MAX_DISTANCE_MS &&
    (["actor", "via", "address"] as const).every((name) => newer[name] === older[name])
  );
}

/** Describes an entry, or those that were combined with it, as in “created 12 links”. */
export function lineOf(entry: AuditEntry, lines: Lines): string {
  const count = lines.get(entry.id)?.length ?? 1;
  return count > 1 ? `${groupVerbOf(entry)} ${count.toLocaleString("en")} links` : summaryOf(entry);
}

function columnsOf(path: string, filter: Record<string, string>, lines: Lines): Columns<AuditEntry> {
  return {
    Time: ({ at }) => time(at),
    Actor: (entry) => html`<bdi>${actorNameOf(entry)}</bdi>${viaLink(entry, path)}`,
    Event(entry) {
      const oldest = lines.get(entry.id)?.at(-1)?.id ?? entry.id;
      const part = pathWith(path, { ...filter, part: `${entry.id}..${oldest}` });
      const text = lineOf(entry, lines);
      return oldest === entry.id ? text : html`<a href="${part}">${text}</a>`;
    },
    "IP address": ({ address }) => address ?? "–",
  };
}

/** Links the app that acted for a user to everything that it did. */
function viaLink({ via, names }: AuditEntry, path: string): Html {
  if (via === null) return html``;
  return html` via <a href="${pathWith(path, { client_id: via })}"><bdi>${appOf(via, names)}</bdi></a>`;
}

/** Renders the hash of the last entry, which an auditor keeps to recognize a log that was rewritten. */
function proof({ seq, hash }: ChainHead): Html {
  return html`<section class="panel"><h2>Proof of completeness</h2>
<p>Each entry contains the hash of the one before. Save this hash to prove later that earlier entries weren’t changed. <a href="/docs/audit-log">How to verify an export</a></p>
<p>Entry ${seq.toLocaleString("en")}: ${copyable(hash, "hash")}</p></section>`;
}

function filterForm(path: string, query: Record<string, string>, clients: Clients): Html {
  const all = ["", "All"] as const;
  const events = EVENT_GROUPS.map(
    ([label, types]) => [label, types.map((type) => [type, eventName(type)] as const)] as const,
  );
  return html`<form method="get" action="${path}" class="fields">
${select({ name: "category", label: "Category", value: query.category, options: [all, ...CATEGORY_OPTIONS] })}
${select({ name: "type", label: "Event", value: query.type, options: [all], groups: events })}
${select({ name: "client_id", label: "App", value: query.client_id, options: [all, ...clients] })}
${field({ name: "actor", label: "Actor", value: query.actor, attributes: html`placeholder="username or ID" autocapitalize="none"` })}
${field({ name: "from", label: "From", type: "date", value: query.from?.slice(0, 10) })}
${field({ name: "to", label: "To", type: "date", value: query.to?.slice(0, 10) })}
<div class="actions"><button type="submit">Filter</button>${
    Object.keys(filterOf(query)).length > 0 && linkButton(path, "Clear filters", "quiet")
  }</div>
</form>`;
}
