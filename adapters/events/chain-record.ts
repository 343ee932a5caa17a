import { hash } from "node:crypto";
import type { EventRow } from "../database/tables.ts";

/** The columns of an event that its record consists of. */
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

/**
 * Returns the JSON text of an entry that its hash covers. Its form never changes, or existing chains could no longer be
 * verified. The data is the stored text as it is, so that no conversion can alter it.
 */
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

/** An entry with its place in the chain. */
export type ChainedRow = RecordedRow & { seq: number; hash: string };

/** Returns whether an entry is what was chained after another one. */
export function follows(last: { seq: number; hash: string }, row: ChainedRow): boolean {
  return row.seq === last.seq + 1 && row.hash === chainHash(last.hash, recordOf(row.seq, row));
}
