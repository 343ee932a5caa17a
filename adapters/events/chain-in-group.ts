import type { Plan } from "../../resources/plans.ts";
import type { BeginGroupState } from "../database/sqlite/group-state.ts";
import { type ChainEnd, NO_ENTRIES, nextEntry, type UnchainedRow } from "./chain-entry.ts";
import { GENESIS, RECORD_COLUMNS } from "./chain-record.ts";

// A group chains the entries that wait before its own. After an upgrade there can be millions, which the background job chains.
const MAX_WAITING = 50;

const READ_WAITING = `select ${RECORD_COLUMNS.join(", ")}, expires_at from events
  where audited = true and seq is null order by id limit ${MAX_WAITING + 1}`;
const READ_LOG = `select c.seq, c.hash, c.expires_at, o.plan from (select ? as id) log
  left join audit_chains c on c.organization_id = log.id left join organizations o on o.id = log.id`;
const STORE_ENTRY = "update events set seq = ?, hash = ?, expires_at = ? where id = ?";
const STORE_HEAD = `insert into audit_chains (organization_id, seq, hash, expires_at, purged_seq, purged_hash)
  values (?, ?, ?, ?, 0, '${GENESIS}') on conflict (organization_id)
  do update set seq = excluded.seq, hash = excluded.hash, expires_at = excluded.expires_at`;

type Log = { stored: ChainEnd; end: ChainEnd; plan: Plan | undefined };

/**
 * Chains entries in the transaction that inserts them, so their rows are written once. Only on SQLite, whose one writer
 * doesn't wait for other writers of the organization. Each head is read and stored once per group of writes.
 */
export const chainInGroup: BeginGroupState = (read) => {
  const logs = new Map<string, Log>();
  const waiting = read(READ_WAITING, []) as UnchainedRow[];
  const isBehind = waiting.length > MAX_WAITING;
  const chained = isBehind ? [] : waiting.map((row) => ({ id: row.id, ...append(row).end }));

  function readLog(organizationId: string): Log {
    const [{ plan, ...head } = {}] = read(READ_LOG, [organizationId]);
    const stored = head.seq ? (head as ChainEnd) : NO_ENTRIES;
    return { stored, end: stored, plan: (plan ?? undefined) as Plan | undefined };
  }

  function append(row: UnchainedRow): { end: ChainEnd; undo(): void } {
    const id = row.organization_id;
    const log = logs.get(id) ?? readLog(id);
    const end = nextEntry(log.end, row, log.plan);
    logs.set(id, { ...log, end });
    return { end, undo: () => void logs.set(id, log) };
  }

  return {
    add(row) {
      if (isBehind) return { row: { ...row, seq: null, hash: null }, undo() {} };
      const { end, undo } = append(row as UnchainedRow);
      return { row: { ...row, ...end }, undo };
    },

    end: () => [
      ...chained.map(({ id, seq, hash, expires_at }) => ({
        sql: STORE_ENTRY,
        bindings: [seq, hash, expires_at, id],
      })),
      ...[...logs]
        .filter(([, { stored, end }]) => end !== stored)
        .map(([id, { end }]) => ({ sql: STORE_HEAD, bindings: [id, end.seq, end.hash, end.expires_at] })),
    ],
  };
};
