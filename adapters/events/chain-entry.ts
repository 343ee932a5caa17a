import type { Plan } from "../../resources/plans.ts";
import type { AuditChainRow } from "../database/audit-tables.ts";
import type { EventRow } from "../database/tables.ts";
import { chainHash, GENESIS, type RecordedRow, recordOf } from "./chain-record.ts";
import { retentionMs } from "./retention.ts";

/** The last entry of a chain. */
export type ChainEnd = Pick<AuditChainRow, "seq" | "hash" | "expires_at">;
/** An entry without a place in its chain. */
export type UnchainedRow = RecordedRow & Pick<EventRow, "expires_at">;

const NO_ENTRIES = { seq: 0, hash: GENESIS, expires_at: 0, purged_seq: 0, purged_hash: GENESIS };

/** Returns the head of a log without entries. */
export function newHead(organization_id: string): AuditChainRow {
  return { organization_id, ...NO_ENTRIES, mac: null, sum: null };
}

/** Returns the place, hash and expiry of an entry after the last one of its log. */
export function nextEntry(last: ChainEnd, row: UnchainedRow, plan: Plan | undefined): ChainEnd {
  const seq = last.seq + 1;
  return {
    seq,
    hash: chainHash(last.hash, recordOf(seq, row)),
    // Not before the previous entry: expired entries are deleted from the start of the chain, so the rest stays verifiable.
    expires_at: Math.max(last.expires_at, row.expires_at, row.created_at + retentionMs(plan)),
  };
}
