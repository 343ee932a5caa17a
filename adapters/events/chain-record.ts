import { hash } from "node:crypto";
import { AUDIT_LOG_DAYS, type Plan } from "../../resources/plans.ts";
import type { AuditChainRow, EventRow } from "../database/tables/events.ts";

// The operator's own log belongs to no plan.
const OPERATOR_LOG_DAYS = 730;
const DAY_MS = 24 * 60 * 60 * 1000;

export function retentionMs(plan: Plan | undefined): number {
  return (plan ? AUDIT_LOG_DAYS[plan] : OPERATOR_LOG_DAYS) * DAY_MS;
}

export const RECORD_COLUMNS = [
  "id",
  "organization_id",
  "type",
  "created_at",
  "actor",
  "via",
  "address",
  "subject",
  "data",
] as const;
export type RecordedRow = Pick<EventRow, (typeof RECORD_COLUMNS)[number]>;

/** The hash that the first entry of a chain follows. */
export const GENESIS = "0".repeat(64);

/** Its form never changes, or existing chains could no longer be verified; no conversion touches the stored data. */
export function recordOf(seq: number, row: RecordedRow): string {
  const { id, organization_id, type, actor, via, address, subject, data } = row;
  const created_at = new Date(row.created_at).toISOString();
  const head = JSON.stringify({ organization_id, seq, id, type, created_at, actor, via, address, subject });
  return `${head.slice(0, -1)},"data":${data}}`;
}

/** Returns the hash of an entry: SHA-256 over the previous hash, a line feed and the record, in hexadecimal. */
export function chainHash(previousHash: string, record: string): string {
  return hash("sha256", `${previousHash}\n${record}`, "hex");
}

/** The last entry of a chain at some time. */
export type ChainHead = Pick<AuditChainRow, "seq" | "hash">;
export type ChainedRow = RecordedRow & ChainHead;

export function follows(last: ChainHead, row: ChainedRow): boolean {
  return row.seq === last.seq + 1 && row.hash === chainHash(last.hash, recordOf(row.seq, row));
}

export type ChainEnd = ChainHead & Pick<AuditChainRow, "expires_at">;
export type UnchainedRow = RecordedRow & Pick<EventRow, "expires_at">;

export function newHead(organization_id: string): AuditChainRow {
  return { organization_id, seq: 0, hash: GENESIS, expires_at: 0, purged_seq: 0, purged_hash: GENESIS };
}

export function nextEntry(last: ChainEnd, row: UnchainedRow, plan: Plan | undefined): ChainEnd {
  const seq = last.seq + 1;
  return {
    seq,
    hash: chainHash(last.hash, recordOf(seq, row)),
    // Not before the previous entry: purging from the start of the chain leaves the rest verifiable.
    expires_at: Math.max(last.expires_at, row.expires_at, row.created_at + retentionMs(plan)),
  };
}
