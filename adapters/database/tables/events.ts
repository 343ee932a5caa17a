import type { EventType } from "../../../resources/events/types.ts";
import * as t from "./columns.ts";

const HASH = 64; // SHA-256 in hexadecimal
const TRACEPARENT = 55; // version, trace ID, parent ID and flags
export const EVENT_TYPE = 40;

export const events = t.table(
  "events",
  {
    id: t.id().primary(),
    organization_id: t.id(),
    /** False for clicks and tests, which are not shown in the audit log. */
    audited: t.flag(),
    type: t.key(EVENT_TYPE).as<EventType>(),
    actor: t.key(t.CLIENT_ID),
    via: t.key(t.CLIENT_ID).nullable(),
    address: t.key(t.ADDRESS).nullable(),
    subject: t.key(t.CLIENT_ID).nullable(),
    /** JSON. */
    data: t.longText(),
    created_at: t.time(),
    expires_at: t.time(),
    /** The position in the audit log, from 1. Null until the entry is chained, and in events that aren't audited. */
    seq: t.count().nullable(),
    hash: t.key(HASH).nullable(),
    traceparent: t.string(TRACEPARENT).nullable(),
    /** The event with all of the data, if the audit log keeps less. */
    copy_id: t.id().nullable(),
  },
  // The others are in an audit log, which has a purge of its own.
  { indexes: [["organization_id", "audited", "id"]], purged: { where: "audited = false" } },
);
export type EventRow = t.RowOf<typeof events>;

/**
 * The head of a hash chain: its last entry, and the last one that was purged. Its lock orders the processes that append
 * to the chain or delete from it.
 */
export const auditChains = t.table("audit_chains", {
  organization_id: t.id().primary(),
  seq: t.count(),
  hash: t.key(HASH),
  expires_at: t.time(),
  purged_seq: t.count(),
  purged_hash: t.key(HASH),
});
export type AuditChainRow = t.RowOf<typeof auditChains>;

export const EVENT_TABLES = [events, auditChains] as const;
