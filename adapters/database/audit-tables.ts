import type { Time } from "./tables.ts";

/** The hash chain of an audit log: its last entry, and the last one that was deleted because it had expired. */
export type AuditChainRow = {
  organization_id: string;
  seq: number;
  hash: string;
  expires_at: Time;
  purged_seq: number;
  purged_hash: string;
};
