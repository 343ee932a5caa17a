import { setTimeout as sleep } from "node:timers/promises";
import type { Knex } from "knex";
import manifest from "../../../package.json" with { type: "json" };
import type { Engine } from "../engine.ts";
import { createLeases } from "../leases.ts";
import { readClusterSize } from "../mysql.ts";
import { ACCOUNT_TABLES } from "../tables/accounts.ts";
import { BYTE_BY_BYTE, ID, type RowOf } from "../tables/columns.ts";
import { EVENT_TABLES } from "../tables/events.ts";
import { LINK_TABLES } from "../tables/links.ts";
import { OAUTH_TABLES } from "../tables/oauth.ts";
import { ORGANIZATION_TABLES } from "../tables/organizations.ts";
import { leases, SERVICE_TABLES, type schemaCompatibility } from "../tables/service.ts";
import { WEBHOOK_TABLES } from "../tables/webhooks.ts";
import { finishLinks } from "./links.ts";
import { createOnce, creates, createTables, type Migration } from "./migration.ts";

export const MIGRATIONS: Migration[] = [
  creates(
    "0001_service",
    "Creates the tables of the service: schema versions, leases, keys and idempotency keys.",
    SERVICE_TABLES,
  ),
  creates(
    "0002_accounts",
    "Creates the tables of accounts: users, identities, second factors, known devices and mails.",
    ACCOUNT_TABLES,
  ),
  creates(
    "0003_organizations",
    "Creates the tables of organizations: members, invitations, approved apps and trust rules.",
    ORGANIZATION_TABLES,
  ),
  creates("0004_oauth", "Creates the tables of OAuth: clients, grants, tokens and sessions.", OAUTH_TABLES),
  creates("0005_links", "Creates the tables of links and their clicks.", LINK_TABLES, finishLinks),
  creates("0006_events", "Creates the tables of events and audit logs.", EVENT_TABLES, finishEvents),
  creates(
    "0007_webhooks",
    "Creates the tables of webhooks and their deliveries.",
    WEBHOOK_TABLES,
    finishWebhooks,
  ),
];

async function finishEvents(knex: Knex, engine: Engine): Promise<void> {
  const isPartial = engine !== "mysql";
  if (!isPartial && !(await knex.schema.hasColumn("events", "unchained"))) {
    // Takes the place of a partial index.
    await knex.raw(
      "alter table events add column unchained tinyint as (case when audited and seq is null then 1 end) virtual",
    );
  }
  await createOnce(
    knex,
    `create unique index events_chain on events (organization_id, seq)${isPartial ? " where seq is not null" : ""}`,
  );
  await createOnce(
    knex,
    `create index events_unchained on events ${isPartial ? "(id) where audited = true and seq is null" : "(unchained)"}`,
  );
  // An entry gets its final expiry when it is chained, so only then a place in an index.
  const byExpiry = "on events (expires_at)";
  await createOnce(
    knex,
    `create index events_expired ${byExpiry}${isPartial ? " where seq is not null" : ""}`,
  );
  if (isPartial) await createOnce(knex, `create index events_purged ${byExpiry} where audited = false`);
}

async function finishWebhooks(knex: Knex, engine: Engine): Promise<void> {
  await createOnce(knex, "create index deliveries_log on deliveries (webhook_id, type, status, event_id)");
  if (engine !== "mysql") {
    const pending = "(webhook_id, due_at) where due_at is not null";
    await createOnce(knex, `create index deliveries_pending on deliveries ${pending}`);
    return;
  }
  if (await knex.schema.hasColumn("deliveries", "pending_webhook_id")) return;
  // An index can't be partial. One statement, so that the column never exists without its index.
  await knex.raw(
    `alter table deliveries
    add column pending_webhook_id varchar(${ID}) ${BYTE_BY_BYTE}
      generated always as (if(due_at is null, null, webhook_id)) virtual invisible,
    add index deliveries_pending (pending_webhook_id, due_at)`,
  );
}

// Migrations of the versions before 0.4.0, none of which was published.
const UNPUBLISHED = ["0001_initial", "0008_fapi"];
// How long to wait for another process that is migrating, and how often to look.
const WAIT_MS = 120_000;
const RETRY_MS = 100;
// How long a process that died blocks the others, on a Galera cluster.
const LEASE_MS = 60_000;
// An arbitrary number: PostgreSQL's advisory locks have no names.
const LOCK = 7_105_467;
// MySQL's lock names are shared by all databases of the server.
const LOCK_NAME = "concat('linkgate:', sha1(database()))";

/** The table that a copy creates first in its target, and deletes last. It has rows while the copy is unfinished. */
export const COPY_PROGRESS = "copy_progress";

/** This version can't use the database: a newer version has migrated it, or one before 0.4.0 created it. */
export class IncompatibleSchema extends Error {
  override readonly name = "IncompatibleSchema";
}

/** Another process has been migrating the database for longer than this one waits. */
export class MigrationRunning extends Error {
  override readonly name = "MigrationRunning";
  constructor() {
    super("Another process is migrating the database. Start again when it has finished.");
  }
}

/** The database is the target of a copy that isn't complete. */
export class UnfinishedCopy extends Error {
  override readonly name = "UnfinishedCopy";
  constructor(source: string) {
    super(
      `The database contains an unfinished copy of ${source}. Run "linkgate copy" again to finish it, or use another database.`,
    );
  }
}

/** Returns migrations as a Knex source. Listing them saves a file search, which would not find TypeScript. */
export function migrations(engine: Engine, all = MIGRATIONS): Knex.MigrationSource<Migration> {
  return {
    getMigrations: async () => all,
    getMigrationName: (migration) => migration.name,
    getMigration: async (migration) => ({
      async up(knex) {
        await migration.up(knex, engine);
        // Before Knex records the migration: if the process dies in between, both are repeated.
        await recordCompatibility(knex, migration);
      },
      // On PostgreSQL, a transaction that changes several tables deadlocks with transactions of the previous version.
      config: { transaction: engine !== "postgres" },
      down: () => Promise.reject(new Error("migrations cannot be rolled back: restore a backup")),
    }),
  };
}

async function recordCompatibility(knex: Knex, { name, oldestCompatible }: Migration): Promise<void> {
  const row = { migration: name, oldest_compatible: oldestCompatible, version: manifest.version };
  await knex("schema_compatibility").insert(row).onConflict("migration").merge();
}

export type Migratable = {
  knex: Knex;
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>): Promise<T>;
};

type Options = {
  knex: Knex;
  engine: Engine;
  /** Runs work on the same database, whose statements may take longer than others. */
  unlimited<T>(work: (database: Migratable) => Promise<T>): Promise<T>;
};

/**
 * Applies what is pending, and takes no lock if nothing is. Resolves to the names of the migrations that it applied.
 * Throws IncompatibleSchema, MigrationRunning, or UnfinishedCopy unless `isCopyTarget`.
 */
export async function migrate({ knex, engine, unlimited }: Options, isCopyTarget = false): Promise<string[]> {
  const end = performance.now() + WAIT_MS;
  while (await isPending(knex, isCopyTarget)) {
    const applied = await unlimited((own) => own.transaction((trx) => tryToMigrate(trx, own.knex, engine)));
    if (applied) return applied;
    if (performance.now() > end) throw new MigrationRunning();
    // Without a session: a pooler may have too few for the process that migrates.
    await sleep(RETRY_MS);
  }
  return [];
}

async function isPending(knex: Knex, isCopyTarget: boolean): Promise<boolean> {
  if (!isCopyTarget) await rejectUnfinishedCopy(knex);
  await newerMigrations(knex);
  return (await listPending(knex)).length > 0;
}

/**
 * Resolves to undefined while another process migrates. The lock lasts as long as the transaction: Knex's row remains
 * after a crash, and may be inserted twice. On the servers, each statement commits, on another session than that of the
 * lock: a lock of a session means nothing behind a pooler.
 */
async function tryToMigrate(
  trx: Knex.Transaction,
  knex: Knex,
  engine: Engine,
): Promise<string[] | undefined> {
  if (engine === "sqlite") return applyAll(trx);
  if (engine === "postgres") {
    const { rows } = await trx.raw("select pg_try_advisory_xact_lock(?) as taken", [LOCK]);
    return rows[0].taken ? applyAll(knex) : undefined;
  }
  const [[{ taken }]] = await trx.raw(`select get_lock(${LOCK_NAME}, 0) as taken`);
  if (!taken) return undefined;
  try {
    // The server's default character set may not support every script.
    await knex.raw("alter database character set utf8mb4");
    return (await readClusterSize(knex)) > 0 ? await withLease(knex, applyAll) : await applyAll(knex);
  } finally {
    await trx.raw(`select release_lock(${LOCK_NAME})`);
  }
}

/** Resolves to undefined while a process at another node migrates: named locks are those of a node. */
async function withLease<T>(knex: Knex, work: (knex: Knex) => Promise<T>): Promise<T | undefined> {
  await createTables(knex, "mysql", [leases]);
  const lease = createLeases(knex)("migrations", LEASE_MS);
  if (!(await lease.isHeld())) return undefined;
  const renewal = setInterval(() => void lease.isHeld().catch(() => {}), LEASE_MS / 4);
  try {
    return await work(knex);
  } finally {
    clearInterval(renewal);
    await lease.release();
  }
}

async function applyAll(knex: Knex): Promise<string[]> {
  await knex.migrate.forceFreeMigrationsLock();
  const [, applied] = (await knex.migrate.latest()) as [number, string[]];
  return applied;
}

/** Resolves to the names of pending migrations without changing the database. @throws UnfinishedCopy */
export async function pendingMigrations(knex: Knex): Promise<string[]> {
  await rejectUnfinishedCopy(knex);
  return listPending(knex);
}

async function listPending(knex: Knex): Promise<string[]> {
  const applied = await appliedMigrations(knex);
  return MIGRATIONS.map(({ name }) => name).filter((name) => !applied.includes(name));
}

/** Throws IncompatibleSchema unless this version works with what a newer one applied. */
export async function newerMigrations(knex: Knex): Promise<string[]> {
  const known = MIGRATIONS.map(({ name }) => name);
  const newer = (await appliedMigrations(knex)).filter((name) => !known.includes(name));
  await assertCompatible(knex, newer, known);
  return newer;
}

/** Resolves to the names of applied migrations, oldest first. */
export async function appliedMigrations(knex: Knex): Promise<string[]> {
  const isNew = !(await knex.schema.hasTable("knex_migrations"));
  return isNew ? [] : knex("knex_migrations").orderBy("id").pluck("name");
}

async function assertCompatible(knex: Knex, newer: string[], known: string[]): Promise<void> {
  const newest = newer.at(-1);
  if (newest === undefined) return;
  if (newer.some((name) => UNPUBLISHED.includes(name)))
    throw new IncompatibleSchema(
      "The database was created before linkgate 0.4.0 and can't be upgraded: use an empty database.",
    );
  const rows = (await knex.schema.hasTable("schema_compatibility"))
    ? await knex("schema_compatibility").whereIn("migration", newer)
    : [];
  const recorded = new Map<string, RowOf<typeof schemaCompatibility>>(
    rows.map((row) => [row.migration, row]),
  );
  const isCompatible = (name: string) => known.includes(recorded.get(name)?.oldest_compatible ?? "");
  if (newer.every(isCompatible)) return;
  const version = recorded.get(newest)?.version;
  const by = version ? `linkgate ${version}` : "a newer version of linkgate";
  throw new IncompatibleSchema(
    `The database is at schema ${newest} of ${by}, but this is linkgate ${manifest.version}, which can't use schemas after ${known.at(-1)}. Start the newer version, or restore a backup from before the upgrade.`,
  );
}

export async function sourceOfCopy(knex: Knex): Promise<string | undefined> {
  if (!(await knex.schema.hasTable(COPY_PROGRESS))) return undefined;
  const row = await knex<{ source: string }>(COPY_PROGRESS as never).first("source");
  return (row as { source: string } | undefined)?.source;
}

async function rejectUnfinishedCopy(knex: Knex): Promise<void> {
  const source = await sourceOfCopy(knex);
  if (source !== undefined) throw new UnfinishedCopy(source);
}
