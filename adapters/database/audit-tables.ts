import type { Time } from "./tables.ts";

/**
 * The head of an audit log's hash chain: its last entry, the last one that was deleted because it had expired, and the code
 * that authenticates them.
 */
export type AuditChainRow = {
  organization_id: string;
  seq: number;
  hash: string;
  expires_at: Time;
  purged_seq: number;
  purged_hash: string;
  /** Null until there is an encryption key. */
  mac: string | null;
  /** Of the row for all logs, the sum of the codes of their heads. */
  sum: string | null;
};
