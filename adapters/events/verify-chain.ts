import type { Knex } from "knex";
import type { Encryption } from "../crypto/encryption.ts";
import { OPERATOR_ID } from "../crypto/ids.ts";
import { ifDuplicate } from "../database/errors.ts";
import type { Database } from "../database/index.ts";
import type { AuditChainRow } from "../database/tables/events.ts";
import type { AuditChain } from "./audit-chain.ts";
import { ALL_LOGS, isAuthentic, sumOf } from "./chain-heads.ts";
import { type ChainedRow, follows, newHead, RECORD_COLUMNS } from "./chain-record.ts";

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

type StoredRow = ChainedRow & { expires_at: number };

const BATCH = 500;
// Entries are chained within seconds, except for the length of a transaction and for clocks that differ.
const LATE_MS = 60 * 60 * 1000;

/** Also verifies that no log was deleted or replaced by an earlier state. Returns no reports if there is no log. */
export async function verifyChains(
  { knex }: Database,
  encryption: Encryption,
  chain: AuditChain,
  organizationId?: string,
): Promise<ChainReport[]> {
  // An entry that was inserted by hand can take the place of the next one. Verification then reports it.
  await chain.append(organizationId).catch(ifDuplicate(undefined));
  const logs = await logsOf(knex, organizationId);
  const reports: ChainReport[] = [];
  for (const id of logs) {
    const report = await verifyChain(knex, encryption, id);
    // Meanwhile, a purge may have moved the start.
    reports.push(report.ok ? report : await verifyChain(knex, encryption, id));
  }
  const all = logs.length > 0 && (await verifyHeads(knex, encryption));
  return all ? [...reports, all] : reports;
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
  const logs = new Set([OPERATOR_ID, ...found.flat()]);
  logs.delete(ALL_LOGS);
  return [...logs].filter((id) => id === (organizationId ?? id)).sort();
}

async function verifyChain(
  knex: Knex,
  encryption: Encryption,
  organization_id: string,
): Promise<ChainReport> {
  const head = await knex("audit_chains").where({ organization_id }).first();
  const broken = head
    ? await findFault(knex, encryption, organization_id, head)
    : await findMissing(knex, organization_id);
  return reportOf(head ?? newHead(organization_id), broken);
}

function reportOf(head: AuditChainRow, broken: ChainFault | undefined): ChainReport {
  return {
    organization_id: head.organization_id,
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
    organization_id === OPERATOR_ID && !(await entriesOf(knex).where({ organization_id }).first("id"));
  const isWaiting = await knex("events")
    .where({ organization_id, audited: true })
    .whereNull("seq")
    .first("id");
  return isUnused || isWaiting ? undefined : fault("the head of the chain is missing");
}

async function findFault(
  knex: Knex,
  encryption: Encryption,
  organization_id: string,
  head: AuditChainRow,
): Promise<ChainFault | undefined> {
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
  if (last.hash !== head.hash || !isAuthentic(encryption, head))
    return fault("the head of the chain was changed", head.seq);
  if (last.seq > head.purged_seq && last.expires_at !== head.expires_at)
    return fault("the expiry of the entry was changed", head.seq);

  const late = await entries.clone().where("seq", ">", head.seq).orderBy("seq", "desc").first("seq", "id");
  const now = late && (await knex("audit_chains").where({ organization_id }).first("seq"));
  if (late && Number(late.seq) > (now?.seq ?? 0)) return inserted(late);
  const isKnown =
    organization_id === OPERATOR_ID ||
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

/** Verifies the heads of all logs together. Returns a report if one is missing, or isn't the newest. */
async function verifyHeads(knex: Knex, encryption: Encryption): Promise<ChainReport | undefined> {
  // In one statement, because heads move together.
  const rows = await knex("audit_chains");
  const all = rows.find(({ organization_id }) => organization_id === ALL_LOGS) ?? newHead(ALL_LOGS);
  const heads = rows.filter((row) => row !== all);
  if (!isAuthentic(encryption, all))
    return reportOf(all, fault("the head of all logs is missing or was changed"));
  if (sumOf(heads) === all.sum) return undefined;
  return reportOf(all, fault("a log was deleted, or replaced by an earlier state"));
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
