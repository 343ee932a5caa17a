import type { Knex } from "knex";
import type { Engine } from "../engine.ts";
import { NO_STATEMENT_TIMEOUT } from "../postgres.ts";
import { assertCompatible } from "./compatibility.ts";
import { MIGRATIONS } from "./index.ts";
import type { Migration } from "./migration.ts";
import { rejectUnfinishedCopy } from "./unfinished-copy.ts";

// How long to wait for another process that is migrating.
const WAIT_S = 30;
// An arbitrary number: PostgreSQL's advisory locks have no names.
const LOCK = 7_105_467;

type Migratable = {
  knex: Knex;
  engine: Engine;
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>): Promise<T>;
};

/**
 * Applies pending migrations under a lock and resolves to their names. Knex locks by a row, which remains after a crash
 * and may be inserted twice by two processes that start together. This lock ends with its connection, and Knex's row is
 * reset while it is held.
 * @param isCopyTarget whether a copy migrates its target, which no other process may use yet
 * @throws IncompatibleSchema
 * @throws UnfinishedCopy
 */
export function migrate({ knex, engine, transaction }: Migratable, isCopyTarget = false): Promise<string[]> {
  return transaction(async (trx) => {
    // On the servers, each statement commits, so the lock needs a connection of its own.
    if (engine === "mysql") return migrateMysql(trx, knex, isCopyTarget);
    if (engine === "postgres") return migratePostgres(trx, knex, isCopyTarget);
    return applyAll(trx, isCopyTarget);
  });
}

async function migratePostgres(trx: Knex, knex: Knex, isCopyTarget: boolean): Promise<string[]> {
  await trx.raw(`set local lock_timeout = '${WAIT_S}s'`);
  await trx.raw(NO_STATEMENT_TIMEOUT);
  await trx.raw("select pg_advisory_xact_lock(?)", [LOCK]);
  return applyAll(knex, isCopyTarget);
}

async function migrateMysql(trx: Knex, knex: Knex, isCopyTarget: boolean): Promise<string[]> {
  // Lock names are shared by all databases of the server.
  const [[{ taken }]] = await trx.raw("select get_lock(concat('linkgate:', sha1(database())), ?) as taken", [
    WAIT_S,
  ]);
  if (!taken) throw new Error("another process has been migrating for too long");
  try {
    // The server's default character set may not support every script.
    await knex.raw("alter database character set utf8mb4");
    return await applyAll(knex, isCopyTarget);
  } finally {
    await trx.raw("select release_lock(concat('linkgate:', sha1(database())))");
  }
}

async function applyAll(knex: Knex, isCopyTarget: boolean): Promise<string[]> {
  if (!isCopyTarget) await rejectUnfinishedCopy(knex);
  await newerMigrations({ knex });
  await knex.migrate.forceFreeMigrationsLock();
  const [, applied] = (await knex.migrate.latest()) as [number, string[]];
  return applied;
}

/**
 * Resolves to the names of pending migrations without changing the database. Rejects when it is unavailable.
 * @throws UnfinishedCopy
 */
export async function pendingMigrations(
  { knex }: { knex: Knex },
  migrations: Migration[],
): Promise<string[]> {
  await rejectUnfinishedCopy(knex);
  const applied = await appliedMigrations(knex);
  return migrations.map(({ name }) => name).filter((name) => !applied.includes(name));
}

/**
 * Resolves to the names of migrations that a newer version applied and that this version can work with.
 * @throws IncompatibleSchema if it can't
 */
export async function newerMigrations({ knex }: { knex: Knex }): Promise<string[]> {
  const known = MIGRATIONS.map(({ name }) => name);
  const newer = (await appliedMigrations(knex)).filter((name) => !known.includes(name));
  await assertCompatible(knex, newer, known);
  return newer;
}

async function appliedMigrations(knex: Knex): Promise<string[]> {
  const isNew = !(await knex.schema.hasTable("knex_migrations"));
  return isNew ? [] : knex("knex_migrations").orderBy("id").pluck("name");
}
