import type { Knex } from "knex";
import { OPERATOR } from "../../resources/events/types.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { AuditChainRow } from "../database/tables/events.ts";
import type { AuditChain } from "./audit-chain.ts";
import { type ChainedRow, type ChainHead, follows, newHead, RECORD_COLUMNS } from "./chain-record.ts";

/** `id` is null if there is no entry at that place; `seq` is 0 if the whole log is meant. */
export type ChainFault = { seq: number; id: string | null; reason: string };

export type ChainReport = {
  organization_id: string;
  ok: boolean;
  /** The places of the first and last entry. The first is after the last if all entries have expired. */
  first_seq: number;
  last_seq: number;
  head_hash: string;
  broken?: ChainFault;
};

export type LogHead = ChainHead & { organization_id: string };

type StoredRow = ChainedRow & { expires_at: number };

const BATCH = 500;
// Entries are chained within seconds, except for the length of a transaction and for clocks that differ.
const LATE_MS = 60 * 60 * 1000;

/**
 * Verifies one log, or all, and that they still contain heads that were kept elsewhere. Returns no reports if there is no
 * such log.
 */
export async function verifyChains(
  { knex }: Database,
  chain: AuditChain,
  organizationId?: string,
  kept: readonly LogHead[] = [],
): Promise<ChainReport[]> {
  // An entry that was inserted by hand can take the place of the next one. Verification then reports it.
  await chain.append(organizationId).catch(ifDuplicate(undefined));
  const found = await logsOf(knex, organizationId);
  const logs = [...new Set([...found, ...kept.map(({ organization_id }) => organization_id)])].sort();
  const reports: ChainReport[] = [];
  for (const id of logs) {
    const report = await verifyChain(knex, id, kept);
    // Meanwhile, a purge may have moved the start.
    reports.push(report.ok ? report : await verifyChain(knex, id, kept));
  }
  return reports;
}

/** Lists the logs that exist, and those that must; or one of them. */
async function logsOf(knex: Knex, organizationId?: string): Promise<string[]> {
  const column = "organization_id";
  const own = organizationId === undefined ? {} : { [column]: organizationId };
  const found: string[][] = await Promise.all([
    knex("organizations")
      .where(organizationId === undefined ? {} : { id: organizationId })
      .pluck("id"),
    knex("audit_chains").where(own).pluck(column),
    entriesOf(knex).where(own).distinct(column).pluck(column),
  ]);
  const logs = new Set([OPERATOR.id, ...found.flat()]);
  return [...logs].filter((id) => id === (organizationId ?? id));
}

async function verifyChain(
  knex: Knex,
  organization_id: string,
  kept: readonly LogHead[],
): Promise<ChainReport> {
  const stored = await knex("audit_chains").where({ organization_id }).first();
  const head = stored ?? newHead(organization_id);
  const own = kept.filter((one) => one.organization_id === organization_id);
  const broken =
    (stored ? await findFault(knex, stored) : await findMissing(knex, organization_id)) ??
    (await findLost(knex, head, own));
  return {
    organization_id,
    ok: broken === undefined,
    first_seq: head.purged_seq + 1,
    last_seq: head.seq,
    head_hash: head.hash,
    ...(broken && { broken }),
  };
}

/** Every organization has a log, whose first entry is chained with its head. */
async function findMissing(knex: Knex, organization_id: string): Promise<ChainFault | undefined> {
  const isUnused =
    organization_id === OPERATOR.id && !(await entriesOf(knex).where({ organization_id }).first("id"));
  const isWaiting = await knex("events")
    .where({ organization_id, audited: true })
    .whereNull("seq")
    .first("id");
  return isUnused || isWaiting ? undefined : fault("the head of the chain is missing");
}

/** Finds a kept head that the log doesn't contain. Its hash depends on all entries before it. */
async function findLost(
  knex: Knex,
  head: AuditChainRow,
  kept: readonly LogHead[],
): Promise<ChainFault | undefined> {
  for (const { organization_id, seq, hash } of kept) {
    if (seq > head.seq) return fault("the log ends before the kept head", seq);
    if (seq < head.purged_seq) return fault("the entry of the kept head has expired or was deleted", seq);
    const entry = await entriesOf(knex).where({ organization_id, seq }).first("hash");
    const actual = seq === head.purged_seq ? head.purged_hash : entry?.hash;
    if (actual !== hash) return fault("the log was rewritten before the kept head", seq);
  }
  return undefined;
}

async function findFault(knex: Knex, head: AuditChainRow): Promise<ChainFault | undefined> {
  const { organization_id } = head;
  const entries = entriesOf(knex).where({ organization_id });
  const early = await entries.clone().where("seq", "<=", head.purged_seq).orderBy("seq").first("seq", "id");
  if (early) return inserted(early);

  let last = { seq: head.purged_seq, hash: head.purged_hash, expires_at: 0 };
  let newest = 0;
  while (last.seq < head.seq) {
    const rows: StoredRow[] = await entries
      .clone()
      .where("seq", ">", last.seq)
      .where("seq", "<=", head.seq)
      .orderBy("seq")
      .limit(BATCH)
      .select(...RECORD_COLUMNS, "seq", "hash", "expires_at");
    if (rows.length === 0) return missing(last.seq + 1);
    for (const row of rows) {
      if (row.seq !== last.seq + 1) return missing(last.seq + 1);
      const reason = reasonAgainst(last, newest, row);
      if (reason) return { seq: row.seq, id: row.id, reason };
      newest = Math.max(newest, row.created_at);
      last = row;
    }
  }
  if (last.hash !== head.hash) return fault("the head of the chain was changed", head.seq);
  if (last.seq > head.purged_seq && last.expires_at !== head.expires_at)
    return fault("the expiry of the entry was changed", head.seq);

  const late = await entries.clone().where("seq", ">", head.seq).orderBy("seq", "desc").first("seq", "id");
  const now = late && (await knex("audit_chains").where({ organization_id }).first("seq"));
  if (late && Number(late.seq) > (now?.seq ?? 0)) return inserted(late);
  const isKnown =
    organization_id === OPERATOR.id ||
    (await knex("organizations").where({ id: organization_id }).first("id"));
  return isKnown ? undefined : fault("the organization of the log is missing");
}

function reasonAgainst(
  last: { seq: number; hash: string; expires_at: number },
  newest: number,
  row: StoredRow,
): string | undefined {
  if (!follows(last, row)) return "the entry or its hash was changed";
  if (row.expires_at < last.expires_at) return "the expiry of the entry was changed";
  return row.created_at < newest - LATE_MS ? "the entry is older than the entries before it" : undefined;
}

function entriesOf(knex: Knex) {
  return knex("events").whereNotNull("seq").where({ audited: true });
}

function fault(reason: string, seq = 0): ChainFault {
  return { seq, id: null, reason };
}

function missing(seq: number): ChainFault {
  return fault("the entry is missing", seq);
}

function inserted({ seq, id }: { seq: number | null; id: string }): ChainFault {
  return { seq: seq as number, id, reason: "the entry was inserted" };
}
