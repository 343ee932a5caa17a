import knexFactory, { type Knex } from "knex";
import { createBatchInsert, type Insertion, type LookupQuery, prepareLookup } from "./batches.ts";
import { type DatabaseOptions, type Engine, engineOf, knexConfig, rowsOf, sqliteFile } from "./engine.ts";
import { isReadOnly } from "./errors.ts";
import { createLeases } from "./leases.ts";
import type { LimitedClient } from "./limited-client.ts";
import {
  type Migratable,
  migrate,
  migrations,
  newerMigrations,
  pendingMigrations,
} from "./migrations/index.ts";
import { planUpgrade } from "./migrations/plan.ts";
import { readClusterSize } from "./mysql.ts";
import { createPrepare } from "./prepared-statements.ts";
import { withRetries } from "./retry.ts";
import { backUp, type OnBackUp } from "./sqlite/backup.ts";
import type { SqliteClient } from "./sqlite/client.ts";
import { observed, type Pool } from "./statement-observer.ts";

/** An open database, which every store receives. Times are epoch milliseconds. */
export type Database = ReturnType<typeof openDatabase>;

/** Receives the result of a transaction that is about to be committed, such as a secret. If it throws, nothing is. */
export type BeforeCommit<T> = (result: T) => Promise<void>;

/** The database can't store every text, so a title with an emoji would fail. */
export class UnsupportedEncoding extends Error {
  override readonly name = "UnsupportedEncoding";
}

type Work<T> = (trx: Knex.Transaction) => Promise<T>;

/** Connects lazily, and then creates a SQLite file and its folder, for their owner only. */
export function openDatabase(url: string, options: DatabaseOptions = {}) {
  const engine = engineOf(url);
  const knex = knexFactory({
    ...knexConfig(url, options),
    migrations: {
      migrationSource: migrations(engine),
      disableTransactions: engine === "mysql",
      // Knex would reject the migrations of every newer version.
      disableMigrationsListValidation: true,
    },
    log: silent,
  });
  const statements = createPrepare(knex);

  function transaction<T>(work: Work<T>, commit = { isDurable: true }): Promise<T> {
    const run: Work<T> = async (trx) => {
      if (engine === "postgres" && !commit.isDurable) await trx.raw("set local synchronous_commit to off");
      return work(trx);
    };
    const attempt = () => knex.transaction(run, commit as Knex.TransactionConfig);
    return withRetries(() => observed(options.observer, "transaction", "", attempt), false);
  }

  /** Runs work on connections without a time limit: a migration of a large table takes minutes. */
  function unlimited<T>(work: (database: Migratable) => Promise<T>): Promise<T> {
    const own = openDatabase(url, { ...options, timeoutMs: Number.POSITIVE_INFINITY });
    return work(own).finally(own.close);
  }

  return {
    knex,
    engine,
    ...statements,
    lookup: <Row>(query: LookupQuery<Row>) => prepareLookup({ ...statements, engine }, query),
    /** Returns a lease: see `createLeases`. */
    lease: createLeases(knex),
    inserter: (insertion: Insertion) => createBatchInsert({ knex, engine, ...statements }, insertion),

    /**
     * Runs `work` again after a conflict, so it must have no other side effects. A commit that isn't `isDurable`
     * doesn't wait for the disk (except on MySQL): a power failure may undo it, but no durable commit after it.
     */
    transaction,

    /** A long read, on SQLite on a thread; elsewhere limited by `timeoutMs` (`isCanceled` recognizes the error). */
    readAside: <Row>(query: Knex.QueryBuilder, timeoutMs: number): Promise<Row[]> =>
      engine === "sqlite"
        ? ((knex.client as SqliteClient).readOnThread(query.toSQL().toNative()) as Promise<Row[]>)
        : (knex.client as LimitedClient).runFor<Row[]>(timeoutMs, (connection) =>
            query.connection(connection),
          ),

    /** Resolves to the names of applied migrations. Safe to call from several processes. @throws UnfinishedCopy, MigrationRunning, UnsupportedEncoding */
    async migrate(options?: { isCopyTarget: boolean }): Promise<string[]> {
      await assertEncoding(knex, engine);
      return migrate({ knex, engine, unlimited }, options?.isCopyTarget);
    },

    assertEncoding: () => assertEncoding(knex, engine),
    pendingMigrations: () => pendingMigrations(knex),
    newerMigrations: () => newerMigrations(knex),
    planUpgrade: () => planUpgrade(knex, engine),

    /** Resolves to false if the server is read-only, as a standby is. Deletes nothing. */
    async isWritable(): Promise<boolean> {
      if (engine === "sqlite") return true;
      const write = knex("leases").where({ name: "" }).delete();
      const deleted = await write.catch((error) => (isReadOnly(error) ? undefined : Promise.reject(error)));
      return deleted !== undefined;
    },

    /** Resolves to the number of nodes if the server is one of a Galera cluster, and else to 0. */
    clusterSize: async (): Promise<number> => (engine === "mysql" ? readClusterSize(knex) : 0),

    /** Calls the listener for each failed checkpoint of a SQLite database. The checkpoint is retried. */
    onCheckpointError: (listener: (error: Error) => void) =>
      void knex.client.on("checkpoint-error", listener),

    /** Reports once that the disk of a SQLite database failed or its log is lost: no write succeeds after that. */
    onFailure: (listener: (error: Error) => void) => void knex.client.on("failure", listener),

    /** Copies a SQLite database to a new file, and resolves to its tables. Throws DamagedBackup. */
    backUp: (file: string, stop?: AbortSignal, onProgress?: OnBackUp) =>
      backUp(sqliteFile(url), file, stop, onProgress),

    connections: (): Pool | undefined =>
      engine === "sqlite" ? undefined : (knex.client as unknown as LimitedClient).connections,

    close: () => knex.destroy(),
  };
}

/** Throws UnsupportedEncoding unless all texts of the database are stored as UTF-8. SQLite can do nothing else. */
async function assertEncoding(knex: Knex, engine: Engine): Promise<void> {
  if (engine === "postgres") {
    const [row] = rowsOf<{ server_encoding: string }>(await knex.raw("show server_encoding"));
    if (row?.server_encoding !== "UTF8")
      throw new UnsupportedEncoding(
        `The database has the encoding ${row?.server_encoding}, which can't store every text. Use a database that was created with: create database linkgate encoding 'UTF8' template template0`,
      );
  }
  if (engine === "mysql") {
    // Migrations set the default of the database. Tables keep theirs, for example when another program restored them.
    const [column] = await knex("information_schema.columns")
      .whereRaw("table_schema = database() and character_set_name <> 'utf8mb4'")
      .orderBy(["table_name", "ordinal_position"])
      .limit(1)
      .select("table_name as table", "column_name as name", "character_set_name as encoding");
    if (column)
      throw new UnsupportedEncoding(
        `The column ${column.table}.${column.name} has the character set ${column.encoding}, which can't store every text. Convert the table to utf8mb4, or use an empty database.`,
      );
  }
}

// Knex prints warnings to the console; callers log errors themselves, with their context.
const silent = { warn() {}, error() {}, debug() {}, deprecate() {} };
