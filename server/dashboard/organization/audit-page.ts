import type { AuditEntry } from "../../../adapters/audit.ts";
import { type Html, html } from "../html.ts";
import { field, linkButton, select, time } from "./controls.ts";
import { actorOf, summaryOf } from "./events.ts";
import { emptyState, pagination, table } from "./table.ts";

type AuditPage = {
  path: string;
  /** As it was asked for. */
  query: Record<string, string>;
  types: readonly string[];
  entries: AuditEntry[];
  nextCursor: string | null;
};

/** What was done, newest first, with a filter and a file of it all. */
export function auditPage({ path, query, types, entries, nextCursor }: AuditPage): Html {
  const filter = new URLSearchParams(
    Object.entries(query).filter(([name, value]) => value && !["cursor", "limit", "done"].includes(name)),
  );
  const columns = [
    { head: "When", cell: ({ at }: AuditEntry) => time(at) },
    { head: "Who", cell: (entry: AuditEntry) => actorOf(entry) },
    { head: "What", cell: (entry: AuditEntry) => summaryOf(entry) },
    { head: "From", cell: ({ address }: AuditEntry) => address ?? "–" },
  ];
  return html`<form method="get" action="${path}" class="row">
${select({
  name: "type",
  label: "Event",
  value: query.type,
  options: [["", "All"], ...types.map((type) => [type, type] as const)],
})}
${field({ name: "actor", label: "Who", value: query.actor, attributes: html`placeholder="username or id" autocapitalize="none"` })}
${field({ name: "from", label: "From", type: "date", value: query.from?.slice(0, 10) })}
${field({ name: "to", label: "To", type: "date", value: query.to?.slice(0, 10) })}
<button type="submit">Filter</button>
${linkButton(`${path}.csv${filter.size > 0 ? `?${filter}` : ""}`, "Export CSV", "quiet")}
</form>
${entries.length > 0 ? table("Audit log", columns, entries) : emptyState("Nothing was found", "Nothing that matches was done in the last year.")}
${pagination(path, query, nextCursor)}`;
}
