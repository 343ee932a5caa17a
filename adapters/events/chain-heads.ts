import { createHash } from "node:crypto";
import type { Knex } from "knex";
import type { Encryption } from "../crypto/encryption.ts";
import type { Database } from "../database/index.ts";
import type { AuditChainRow } from "../database/tables/events.ts";
import { newHead } from "./chain-record.ts";

/** The row with the sum of the codes of all heads, which shows that none was deleted or replaced. */
export const ALL_LOGS = "all";

/** The heads of some logs, and that of all logs, which stay as they are until the transaction ends. */
export type LockedHeads = { all: AuditChainRow; heads: ReadonlyMap<string, AuditChainRow> };

type Codes = Pick<Encryption, "hasKey" | "authenticate" | "isAuthentic">;

const BATCH = 500;
// With the length of a code, an earlier state of many logs with the sum of the present one could be computed.
const SUM_BITS = 2048;
const HEAD_COLUMNS = ["seq", "hash", "expires_at", "purged_seq", "purged_hash", "mac", "sum"] as const;

export function isAuthentic(codes: Codes, head: AuditChainRow): boolean {
  return head.mac !== null && codes.isAuthentic(textOf(head), head.mac);
}

export function sumOf(heads: AuditChainRow[]): string {
  return toText(heads.reduce((sum, { mac }) => sum + toNumber(mac), 0n));
}

/** Returns the changed head and the sum of all. One that wasn't authentic keeps its code, so it stays that way. */
function moveHead(codes: Codes, all: AuditChainRow, before: AuditChainRow | undefined, after: AuditChainRow) {
  if (before && !isAuthentic(codes, before)) return { head: after, all };
  const head = withCode(codes, after);
  if (!isAuthentic(codes, all)) return { head, all };
  const sum = toText(BigInt(`0x${all.sum}`) - toNumber(before?.mac) + toNumber(head.mac));
  return { head, all: withCode(codes, { ...all, sum }) };
}

/** Locks the heads of all logs, and reads those of some, without the missing ones. */
export async function lockHeads(trx: Knex.Transaction, logs: string[]): Promise<LockedHeads> {
  const all = await lockAll(trx);
  const heads = await trx("audit_chains").whereIn("organization_id", logs);
  return { all, heads: new Map(heads.map((head) => [head.organization_id, head])) };
}

export async function storeHeads(
  trx: Knex.Transaction,
  codes: Codes,
  locked: LockedHeads,
  changed: AuditChainRow[],
): Promise<void> {
  let { all } = locked;
  const moved = changed.map((after) => {
    const result = moveHead(codes, all, locked.heads.get(after.organization_id), after);
    all = result.all;
    return result.head;
  });
  await upsert(trx, [...moved, all]);
}

/** Authenticates the heads of a new database, once there is a key. */
export async function acceptFirstHeads(database: Database, codes: Codes): Promise<void> {
  if (!codes.hasKey()) return;
  const { knex } = database;
  const isNew =
    !(await knex("audit_chains").first("organization_id")) && !(await knex("organizations").first("id"));
  if (isNew) await acceptHeads(database, codes);
}

/** Authenticates the heads of all logs as they are, and begins a log for every organization without one. */
export async function acceptHeads({ transaction }: Database, codes: Codes): Promise<void> {
  await transaction(async (trx) => {
    const all = await lockAll(trx);
    const without = await trx("organizations")
      .whereNotIn("id", trx("audit_chains").select("organization_id"))
      .pluck("id");
    const heads = await trx("audit_chains").whereNot("organization_id", ALL_LOGS);
    const accepted = [...heads, ...without.map(newHead)].map((head) => withCode(codes, head));
    for (let start = 0; start < accepted.length; start += BATCH)
      await upsert(trx, accepted.slice(start, start + BATCH));
    await upsert(trx, [withCode(codes, { ...all, sum: sumOf(accepted) })]);
  });
}

/** Computes the codes again that were computed with an older key. Resolves to their number. */
export async function renewCodes(database: Database, codes: Codes): Promise<number> {
  const outdated = (await findOutdated(database, codes)).filter((head) => isAuthentic(codes, head));
  for (let start = 0; start < outdated.length; start += BATCH) {
    const logs = outdated.slice(start, start + BATCH).map(({ organization_id }) => organization_id);
    await database.transaction(async (trx) => {
      const locked = await lockHeads(trx, logs);
      const all = isAuthentic(codes, locked.all) ? withCode(codes, locked.all) : locked.all;
      const changed = [...locked.heads.values()].filter(
        ({ organization_id }) => organization_id !== ALL_LOGS,
      );
      await storeHeads(trx, codes, { ...locked, all }, changed);
    });
  }
  return outdated.length;
}

export async function findOutdated({ knex }: Pick<Database, "knex">, codes: Codes): Promise<AuditChainRow[]> {
  const heads = await knex("audit_chains").whereNotNull("mac");
  return codes.hasKey() ? heads.filter((head) => head.mac !== codes.authenticate(textOf(head))) : heads;
}

async function lockAll(trx: Knex.Transaction): Promise<AuditChainRow> {
  const lock = () => trx("audit_chains").where({ organization_id: ALL_LOGS }).forUpdate().first();
  const existing = await lock();
  if (existing) return existing;
  await trx("audit_chains").insert(newHead(ALL_LOGS)).onConflict("organization_id").ignore();
  return (await lock()) as AuditChainRow;
}

async function upsert(trx: Knex.Transaction, heads: AuditChainRow[]): Promise<void> {
  await trx("audit_chains")
    .insert(heads)
    .onConflict("organization_id")
    .merge([...HEAD_COLUMNS]);
}

function withCode(codes: Codes, head: AuditChainRow): AuditChainRow {
  return { ...head, mac: codes.authenticate(textOf(head)) };
}

function textOf(head: AuditChainRow): string {
  const { organization_id, seq, hash, expires_at, purged_seq, purged_hash, sum } = head;
  return JSON.stringify([organization_id, seq, hash, expires_at, purged_seq, purged_hash, sum]);
}

function toNumber(mac: string | null | undefined): bigint {
  if (!mac) return 0n;
  const expanded = createHash("shake256", { outputLength: SUM_BITS / 8 })
    .update(mac)
    .digest("hex");
  return BigInt(`0x${expanded}`);
}

function toText(sum: bigint): string {
  return BigInt.asUintN(SUM_BITS, sum).toString(16);
}
