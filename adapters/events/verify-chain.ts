import type { Knex } from "knex";
import type { AuditChainRow } from "../database/audit-tables.ts";
import { isDuplicate } from "../database/engine.ts";
import type { Database } from "../database/index.ts";
import type { AuditChain } from "./audit-chain.ts";
import { chainHash, GENESIS, RECORD_COLUMNS, type RecordedRow, recordOf } from "./chain-record.ts";

/** The first place where a log isn't what was recorded. `id` is null if there is no entry at that place. */
export type ChainFault = { seq: number; id: string | null; reason: string };

/** The result of verifying the audit log of an organization, or the operator's. */
export type ChainReport = {
  organization_id: string;
  ok: boolean;
  /** The places of the first and last entry. The first is after the last if all entries have expired. */
  first_seq: number;
  last_seq: number;
  /** The hash of the last entry. */
  head_hash: string;
  broken?: ChainFault;
};

type Head = Pick<AuditChainRow, "seq" | "hash" | "purged_seq" | "purged_hash">;
type ChainedRow = RecordedRow & { seq: number; hash: string };

const BATCH = 500;
const NO_HEAD: Head = { seq: 0, hash: GENESIS, purged_seq: 0, purged_hash: GENESIS };

/** Verifies one audit log, or all of them, after chaining the entries that wait. */
export async function verifyChains(
  { knex }: Database,
  chain: AuditChain,
  organizationId?: string,
): Promise<ChainReport[]> {
  await appendWaiting(chain, organizationId);
  const reports: ChainReport[] = [];
  for (const id of organizationId ? [organizationId] : await logsOf(knex)) {
    const report = await verifyChain(knex, id);
    // Meanwhile, a purge may have moved the start.
    reports.push(report.ok ? report : await verifyChain(knex, id));
  }
  return reports;
}

/** An entry that was inserted by hand can take the place of the next one. Verification then reports it. */
async function appendWaiting(chain: AuditChain, organizationId?: string): Promise<void> {
  try {
    await chain.append(organizationId);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
}

async function logsOf(knex: Knex): Promise<string[]> {
  const heads: string[] = await knex("audit_chains").pluck("organization_id");
  const logs: string[] = await entriesOf(knex).distinct("organization_id").pluck("organization_id");
  return [...new Set([...heads, ...logs])].sort();
}

async function verifyChain(knex: Knex, organization_id: string): Promise<ChainReport> {
  const head = (await knex("audit_chains").where({ organization_id }).first()) ?? NO_HEAD;
  const broken = await findFault(knex, organization_id, head);
  return {
    organization_id,
    ok: broken === undefined,
    first_seq: head.purged_seq + 1,
    last_seq: head.seq,
    head_hash: head.hash,
    ...(broken && { broken }),
  };
}

async function findFault(knex: Knex, organization_id: string, head: Head): Promise<ChainFault | undefined> {
  const entries = entriesOf(knex).where({ organization_id });
  const early = await entries.clone().where("seq", "<=", head.purged_seq).orderBy("seq").first("seq", "id");
  if (early) return inserted(early);

  let last = { seq: head.purged_seq, hash: head.purged_hash };
  while (last.seq < head.seq) {
    const rows: ChainedRow[] = await entries
      .clone()
      .where("seq", ">", last.seq)
      .where("seq", "<=", head.seq)
      .orderBy("seq")
      .limit(BATCH)
      .select(...RECORD_COLUMNS, "seq", "hash");
    if (rows.length === 0) return missing(last.seq + 1);
    for (const row of rows) {
      if (row.seq !== last.seq + 1) return missing(last.seq + 1);
      if (row.hash !== chainHash(last.hash, recordOf(row.seq, row))) {
        return { seq: row.seq, id: row.id, reason: "the entry or its hash was changed" };
      }
      last = row;
    }
  }
  if (last.hash !== head.hash)
    return { seq: head.seq, id: null, reason: "the head of the chain was changed" };

  const late = await entries.clone().where("seq", ">", head.seq).orderBy("seq", "desc").first("seq", "id");
  const now = late && (await knex("audit_chains").where({ organization_id }).first("seq"));
  return late && Number(late.seq) > (now?.seq ?? 0) ? inserted(late) : undefined;
}

function entriesOf(knex: Knex) {
  return knex("events").whereNotNull("seq").where({ audited: true });
}

function missing(seq: number): ChainFault {
  return { seq, id: null, reason: "the entry is missing" };
}

function inserted({ seq, id }: { seq: number | null; id: string }): ChainFault {
  return { seq: seq as number, id, reason: "the entry was inserted" };
}
