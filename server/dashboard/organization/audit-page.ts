import type { AuditEntry, ChainHead } from "../../../adapters/events/audit-log.ts";
import { copyable, field, linkButton, select, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, emptyState, pagination, table } from "../../ui/table.ts";
import { CATEGORY_OPTIONS } from "./audit-query.ts";
import { actorNameOf, summaryOf } from "./audit-sentences.ts";

type AuditPage = {
  path: string;
  /** The query of the request. */
  query: Record<string, string>;
  types: readonly string[];
  entries: AuditEntry[];
  nextCursor: string | null;
  head: ChainHead | undefined;
};

const COLUMNS: Column<AuditEntry>[] = [
  { head: "Time", cell: ({ at }) => time(at) },
  { head: "Actor", cell: (entry) => html`<bdi>${actorNameOf(entry)}</bdi>` },
  { head: "Event", cell: summaryOf },
  { head: "IP address", cell: ({ address }) => address ?? "–" },
];

/** Renders the audit log, newest first, with a filter and a link to the CSV export. */
export function auditPage({ path, query, types, entries, nextCursor, head }: AuditPage): Html {
  return html`${filterForm(path, query, types)}
${entries.length > 0 ? table("Audit log", COLUMNS, entries) : emptyState("No events found", "No entry matches the filter.")}
${pagination(path, query, nextCursor)}
${head ? proof(head) : html``}`;
}

/** Renders the hash of the last entry, which an auditor keeps to recognize a log that was rewritten. */
function proof({ seq, hash }: ChainHead): Html {
  return html`<section class="panel"><h2>Proof of completeness</h2>
<p>Each entry contains the hash of the one before. Keep the hash of the last entry: a later export that contains it proves that
nothing before it was changed or deleted. <a href="/docs#audit-log">How to verify an export</a></p>
<p>Entry ${seq.toLocaleString("en")}: ${copyable(hash, "hash")}</p></section>`;
}

function filterForm(path: string, query: Record<string, string>, types: readonly string[]): Html {
  const filter = new URLSearchParams(
    Object.entries(query).filter(([name, value]) => value && !["cursor", "limit", "done"].includes(name)),
  );
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
  options: [["", "All"], ...types.map((type) => [type, type] as const)],
})}
${field({ name: "actor", label: "Actor", value: query.actor, attributes: html`placeholder="username or ID" autocapitalize="none"` })}
${field({ name: "from", label: "From", type: "date", value: query.from?.slice(0, 10) })}
${field({ name: "to", label: "To", type: "date", value: query.to?.slice(0, 10) })}
<button type="submit">Filter</button>
${linkButton(`${path}.csv${filter.size > 0 ? `?${filter}` : ""}`, "Export CSV", "quiet")}
</form>`;
}
