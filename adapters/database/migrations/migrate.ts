import type { Knex } from "knex";
import type { Database } from "../database.ts";
import type { Migration } from "./migration.ts";

// How long a process waits for another one that is migrating.
const WAIT_S = 30;
// Any number of ours; PostgreSQL has no names for these locks.
const LOCK = 7_105_467;

type Migrated = Pick<Database, "knex" | "engine" | "transaction">;

/**
 * Brings the schema up to date; resolves to the names applied. Knex's own lock is a row, which stays behind when a
 * process dies and may be there twice when two make it at once: ours ends with its connection, and Knex's is made anew
 * under it.
 */
export function migrate({ knex, engine, transaction }: Migrated): Promise<string[]> {
  return transaction(async (trx) => {
    if (engine === "mysql") return migrateBeside(trx, knex);
    if (engine === "postgres") {
      await trx.raw(`set local lock_timeout = '${WAIT_S}s'`);
      await trx.raw("select pg_advisory_xact_lock(?)", [LOCK]);
    }
    return applyAll(trx);
  });
}

/** MySQL commits with every change of the schema: the lock has a connection of its own. */
async function migrateBeside(trx: Knex, knex: Knex): Promise<string[]> {
  // The names of these locks are the server's, not the database's.
  const [[{ taken }]] = await trx.raw("select get_lock(concat('linkgate:', sha1(database())), ?) as taken", [
    WAIT_S,
  ]);
  if (!taken) throw new Error("another process has been migrating for too long");
  try {
    // Whatever the server's default is, a title may be in any script.
    await knex.raw("alter database character set utf8mb4");
    return await applyAll(knex);
  } finally {
    await trx.raw("select release_lock(concat('linkgate:', sha1(database())))");
  }
}

async function applyAll(knex: Knex): Promise<string[]> {
  await knex.migrate.forceFreeMigrationsLock();
  const [, applied] = (await knex.migrate.latest()) as [number, string[]];
  return applied;
}

/** The names that are still to be applied. Changes nothing; rejects when the database is away. */
export async function pending({ knex }: Pick<Database, "knex">, steps: Migration[]): Promise<string[]> {
  const isNew = !(await knex.schema.hasTable("knex_migrations"));
  const applied: string[] = isNew ? [] : await knex("knex_migrations").pluck("name");
  return steps.map(({ name }) => name).filter((name) => !applied.includes(name));
}
