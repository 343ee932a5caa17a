import type { Knex } from "knex";
import type { Database } from "../index.ts";
import type { LimitedClient } from "../limited-client.ts";
import { NO_STATEMENT_TIMEOUT } from "../postgres.ts";
import { limitOf, readStates, type TableState } from "./catalog.ts";
import { conditionOf } from "./create.ts";
import { findDependents } from "./dependents.ts";
import { BRIEFLY, isLockTimeout, withBriefLocks } from "./lock.ts";
import { replaceTable } from "./replace-table.ts";
import { PARTITIONED, type PartitionedTable, startOfUnit, type Unit } from "./tables.ts";

/** Why a table was not partitioned. Scripts read `code`. */
export class PartitionFailed extends Error {
  override readonly name = "PartitionFailed";
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type PartitionOptions = {
  /** What each partition holds. By default, a month of events and click statistics, and a day of the other tables. */
  unit?: Unit | undefined;
  /** Receives a line before each step. */
  onStep?: (text: string) => void;
};

/** The tables that a command has partitioned, and those that were partitioned before. */
export type PartitionResult = { partitioned: string[]; already_partitioned: string[] };

// The advisory lock of the command, an arbitrary number. Not that of migrations: servers that start wait for it.
const COMMAND_LOCK = 7_105_468;
const DAY_MS = 24 * 60 * 60 * 1000;
// Ten queries of 730 partitions with five indexes each take 43,800 locks; the server has this many for each connection.
const LOCKS_BY_DAY = 512;
// Two minutes. Something that uses a table for as long, such as a dump, is worth waiting for.
const RETRIES = { attempts: 80, pauseMs: 1500 };

/**
 * Partitions tables while servers use them: all whose rows expire, unless names are given. Each table becomes the first
 * partition of a new one. What an interrupted call has done is kept or repeated.
 * @throws PartitionFailed
 */
export async function partitionTables(
  { knex, engine }: Database,
  names: string[],
  { unit, onStep = () => {} }: PartitionOptions = {},
): Promise<PartitionResult> {
  if (engine !== "postgres")
    throw new PartitionFailed("unsupported_database", "Only tables on PostgreSQL can be partitioned.");
  const wanted = chosen(names);
  return (knex.client as unknown as LimitedClient).exempt(() =>
    knex.transaction(async (lock) => {
      await lock.raw(NO_STATEMENT_TIMEOUT);
      const { rows } = await lock.raw("select pg_try_advisory_xact_lock(?) as locked", [COMMAND_LOCK]);
      if (!rows[0].locked) throw new PartitionFailed("busy", "Another process is partitioning the tables.");
      const result: PartitionResult = { partitioned: [], already_partitioned: [] };
      const tables = (await readStates(knex)).filter(({ table }) => wanted.has(table.name));
      for (const each of tables) expectUnit(each, unit);
      for (const { table, state } of tables) {
        if (state === "plain") {
          if (unit === "day" && table.unit === "month") await warnOfLocks(knex, table.name, onStep);
          await convert(knex, { ...table, unit: unit ?? table.unit }, onStep);
        }
        (state === "plain" ? result.partitioned : result.already_partitioned).push(table.name);
      }
      return result;
    }),
  );
}

function chosen(names: string[]): Set<string> {
  const known = PARTITIONED.map(({ name }): string => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new PartitionFailed(
      "unknown_table",
      `"${unknown}" can't be partitioned. Tables: ${known.join(", ")}.`,
    );
  return new Set(
    names.length > 0 ? names : PARTITIONED.filter(({ onRequest }) => !onRequest).map(({ name }) => name),
  );
}

/** Refuses to change the unit of a table, whose rows would have to be moved. */
function expectUnit({ table, state }: TableState, unit: Unit | undefined): void {
  if (!unit || state === "plain" || (state === "ours" && table.unit === unit)) return;
  const present = state === "ours" ? `by ${table.unit}` : "by an operator";
  throw new PartitionFailed(
    "already_partitioned",
    `${table.name} is already partitioned ${present}, which can't be changed.`,
  );
}

/** Says so if the server has too few locks for the days of a table that has months by default. */
async function warnOfLocks(knex: Knex, name: string, onStep: (text: string) => void): Promise<void> {
  const { rows } = await knex.raw("select current_setting('max_locks_per_transaction')::int as locks");
  if (rows[0].locks < LOCKS_BY_DAY)
    onStep(
      `${name}: set max_locks_per_transaction of the database server, which is ${rows[0].locks}, to ${LOCKS_BY_DAY} or more before there are hundreds of days`,
    );
}

async function convert(knex: Knex, table: PartitionedTable, onStep: (text: string) => void): Promise<void> {
  const dependents = await findDependents(knex, table);
  if (dependents.length > 0) {
    throw new PartitionFailed(
      "has_dependents",
      `${table.name} can't be partitioned while it has: ${dependents.join(", ")}.`,
    );
  }
  // Rows of processes whose clocks are ahead come before it, too.
  const boundary = startOfUnit("day", Date.now()) + 3 * DAY_MS;
  try {
    onStep(`${table.name}: reading all rows; requests don't wait`);
    await limitKeys(knex, table, boundary);
    onStep(`${table.name}: replacing the table`);
    await withBriefLocks(knex, table.name, RETRIES, (trx) => replaceTable(trx, table, boundary));
  } catch (error) {
    await withBriefLocks(knex, table.name, BRIEFLY, (trx) => dropLimit(trx, table)).catch(() => {}); // the purge does it later
    if (!isLockTimeout(error)) throw error;
    throw new PartitionFailed(
      "busy",
      `${table.name} is in use by a long transaction, such as a dump. Try again when that has ended.`,
    );
  }
}

/** Proves that no key belongs to a later partition, so the table can become one without being read under a lock. */
async function limitKeys(knex: Knex, table: PartitionedTable, boundary: number): Promise<void> {
  await withBriefLocks(knex, table.name, RETRIES, async (trx) => {
    await dropLimit(trx, table);
    await trx.raw(`alter table ?? add constraint ?? check (${conditionOf(table, boundary)}) not valid`, [
      table.name,
      limitOf(table),
    ]);
  });
  await knex.raw("alter table ?? validate constraint ??", [table.name, limitOf(table)]);
}

async function dropLimit(trx: Knex.Transaction, table: PartitionedTable): Promise<void> {
  await trx.raw("alter table ?? drop constraint if exists ??", [table.name, limitOf(table)]);
}

/** Removes the limit of a conversion that was killed: once its time has come, no rows could be added. */
export function removeAbandonedLimit(knex: Knex, table: PartitionedTable): Promise<void> {
  return withBriefLocks(knex, table.name, BRIEFLY, async (trx) => {
    const { rows } = await trx.raw("select pg_try_advisory_xact_lock(?) as locked", [COMMAND_LOCK]);
    if (rows[0].locked) await dropLimit(trx, table);
  });
}
