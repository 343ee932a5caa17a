import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import { field, linkButton, select, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, emptyState, pagination, table } from "../../ui/table.ts";
import { actorNameOf, summaryOf } from "./audit-sentences.ts";

type AuditPage = {
  path: string;
  /** The query of the request. */
  query: Record<string, string>;
  types: readonly string[];
  entries: AuditEntry[];
  nextCursor: string | null;
};

const COLUMNS: Column<AuditEntry>[] = [
  { head: "Time", cell: ({ at }) => time(at) },
  { head: "Actor", cell: actorNameOf },
  { head: "Event", cell: summaryOf },
  { head: "IP address", cell: ({ address }) => address ?? "–" },
];

/** Renders the audit log, newest first, with a filter and a link to the CSV export. */
export function auditPage({ path, query, types, entries, nextCursor }: AuditPage): Html {
  return html`${filterForm(path, query, types)}
${entries.length > 0 ? table("Audit log", COLUMNS, entries) : emptyState("No events found", "No matching events in the last year.")}
${pagination(path, query, nextCursor)}`;
}

function filterForm(path: string, query: Record<string, string>, types: readonly string[]): Html {
  const filter = new URLSearchParams(
    Object.entries(query).filter(([name, value]) => value && !["cursor", "limit", "done"].includes(name)),
  );
  return html`<form method="get" action="${path}" class="row">
${select({
  name: "type",
  label: "Event",
  value: query.type,
  options: [["", "All"], ...types.map((type) => [type, type] as const)],
})}
${field({ name: "actor", label: "Actor", value: query.actor, attributes: html`placeholder="username or ID" autocapitalize="none"` })}
${field({ name: "from", label: "From", type: "date", value: query.from?.slice(0, 10) })}
${field({ name: "to", label: "To", type: "date", value: query.to?.slice(0, 10) })}
<button type="submit">Filter</button>
${linkButton(`${path}.csv${filter.size > 0 ? `?${filter}` : ""}`, "Export CSV", "quiet")}
</form>`;
}
