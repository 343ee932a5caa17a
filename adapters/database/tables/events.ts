import type { EventType } from "../../../resources/events/types.ts";
import {
  ADDRESS,
  CLIENT_ID,
  count,
  flag,
  id,
  key,
  longText,
  type RowOf,
  string,
  table,
  time,
} from "./columns.ts";

const HASH = 64; // SHA-256 in hexadecimal
const TRACEPARENT = 55; // version, trace ID, parent ID and flags
export const EVENT_TYPE = 40;

export const events = table(
  "events",
  {
    id: id().primary(),
    organization_id: id(),
    /** False for clicks and tests, which are not shown in the audit log. */
    audited: flag(),
    type: key(EVENT_TYPE).as<EventType>(),
    actor: key(CLIENT_ID),
    via: key(CLIENT_ID).nullable(),
    address: key(ADDRESS).nullable(),
    subject: key(CLIENT_ID).nullable(),
    /** JSON. */
    data: longText(),
    created_at: time(),
    expires_at: time().indexed(),
    /** The position in the audit log, from 1. Null until the entry is chained, and in events that aren't audited. */
    seq: count().nullable(),
    hash: key(HASH).nullable(),
    traceparent: string(TRACEPARENT).nullable(),
    /** The event with all of the data, if the audit log keeps less. */
    copy_id: id().nullable(),
  },
  // The others are in an audit log, which has a purge of its own.
  { indexes: [["organization_id", "audited", "id"]], purged: { where: { audited: false } } },
);
export type EventRow = RowOf<typeof events>;

/**
 * The head of a hash chain: its last entry, and the last one that was purged. Its lock orders the processes that append
 * to the chain or delete from it.
 */
export const auditChains = table("audit_chains", {
  organization_id: id().primary(),
  seq: count(),
  hash: key(HASH),
  expires_at: time(),
  purged_seq: count(),
  purged_hash: key(HASH),
});
export type AuditChainRow = RowOf<typeof auditChains>;

export const EVENT_TABLES = [events, auditChains] as const;
