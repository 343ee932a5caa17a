import type { AuditEntry } from "../../../adapters/events/audit-log.ts";
import { summaryOf } from "./audit-sentences.ts";

/** The columns of the CSV export, in order. */
export const CSV_COLUMNS =
  "created_at actor actor_name via via_name address type summary subject data id seq previous_hash hash record".split(
    " ",
  );

/** Returns an entry as the JSON endpoint and the CSV export show it; its data must be in the public form. */
export function toEntryView(entry: AuditEntry) {
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
