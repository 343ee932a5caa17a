import knexFactory, { type Knex } from "knex";
import { createBatchInsert, type Insert } from "./batch-insert.ts";
import { type Engine, engineOf, knexConfig, sqliteFile } from "./engine.ts";
import type { Insertion } from "./insertion.ts";
import type { LimitedClient } from "./limited-client.ts";
import { type Lookup, type LookupQuery, prepareLookup } from "./lookup.ts";
import { MIGRATIONS, migrations } from "./migrations/index.ts";
import { migrate, newerMigrations, pendingMigrations } from "./migrations/migrate.ts";
import type { DatabaseOptions } from "./options.ts";
import { createPrepare, type Prepare, type PrepareTogether } from "./prepared-statements.ts";
import { withRetries } from "./retry.ts";
import { backUp, type CountedTable } from "./sqlite/backup.ts";
import type { SqliteClient } from "./sqlite/client.ts";
import { observed, type Pool } from "./statement-observer.ts";

export type { DatabaseOptions } from "./options.ts";

/** An open database, which every store receives. Times are epoch milliseconds. */
export type Database = {
  knex: Knex;
  engine: Engine;
  prepare: Prepare;
  /** Prepares a query for the rows of a key. */
  lookup<Row>(query: LookupQuery<Row>): Lookup<Row>;
  /** Creates a function that inserts small rows in batches. */
  inserter(insertion: Insertion): Insert;
  /** On SQLite, prepares several writes that are committed in a group with others. */
  prepareTogether: PrepareTogether;
  /**
   * Runs `work` in a transaction. After a deadlock or serialization failure, `work` runs again from the start, so it
   * must have no side effects outside the transaction. Without `isDurable`, the commit doesn't wait for the disk (except
   * on MySQL and MariaDB): a power failure may undo it, but nothing that was durably committed after it.
   */
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>, options?: { isDurable: boolean }): Promise<T>;
  /**
   * Runs a read that may take long: on SQLite, on a thread, so it doesn't block other requests.
   * @throws an error that `isCanceled` recognizes, on the other engines after `timeoutMs`
   */
  readAside<Row>(query: Knex.QueryBuilder, timeoutMs: number): Promise<Row[]>;
  /**
   * Applies pending migrations and resolves to their names. Safe to call from several processes.
   * @throws UnfinishedCopy unless it is a copy that calls
   */
  migrate(options?: { isCopyTarget: boolean }): Promise<string[]>;
  /** Resolves to the names of pending migrations. Rejects when the database is unavailable, or contains an unfinished copy. */
  pendingMigrations(): Promise<string[]>;
  /**
   * Resolves to the names of migrations that a newer version applied and that this version can work with.
   * @throws IncompatibleSchema if it can't
   */
  newerMigrations(): Promise<string[]>;
  /** Calls the listener for each failed checkpoint of a SQLite database. The checkpoint is retried. */
  onCheckpointError(listener: (error: Error) => void): void;
  /**
   * Calls the listener once when a SQLite database has failed: its disk reported an error, or its write-ahead log is lost.
   * All further writes are rejected, so the process should end.
   */
  onFailure(listener: (error: Error) => void): void;
  /**
   * Writes a copy of a SQLite database to a new file, and resolves to its tables. Other processes can write meanwhile.
   * `stop` ends it, and leaves no file.
   * @throws DamagedBackup if the copy differs from the database
   * @throws TypeError for another engine
   */
  backUp(file: string, stop?: AbortSignal): Promise<CountedTable[]>;
  /** Returns how the connections of this process are used; undefined on SQLite, which has no pool. */
  connections(): Pool | undefined;
  close(): Promise<void>;
};

/** Opens the database of a `DATABASE_URL`. Connects lazily, and then creates a SQLite file and its folder, for their owner only. */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
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
  const transaction: Database["transaction"] = (work, commit = { isDurable: true }) => {
    const isAsynchronous = engine === "postgres" && !commit.isDurable;
    const run = isAsynchronous ? withAsynchronousCommit(work) : work;
    const attempt = () => knex.transaction(run, commit as Knex.TransactionConfig);
    return withRetries(() => observed(options.observer, "transaction", "", attempt), false);
  };

  return {
    knex,
    engine,
    ...statements,
    lookup: (query) => prepareLookup({ ...statements, engine }, query),
    inserter: (insertion) => createBatchInsert({ knex, engine, ...statements }, insertion),

    transaction,

    readAside: <Row>(query: Knex.QueryBuilder, ms: number) =>
      engine === "sqlite"
        ? ((knex.client as SqliteClient).readOnThread(query.toSQL().toNative()) as Promise<Row[]>)
        : (knex.client as LimitedClient).runFor<Row[]>(ms, (connection) =>
            engine === "mysql"
              ? query.connection(connection).timeout(ms, { cancel: true })
              : query.connection(connection),
          ),

    migrate(options) {
      const run = () => migrate({ knex, engine, transaction }, options?.isCopyTarget);
      // A migration of a large table takes minutes.
      return engine === "sqlite" ? run() : (knex.client as LimitedClient).exempt(run);
    },

    pendingMigrations: () => pendingMigrations({ knex }, MIGRATIONS),

    newerMigrations: () => newerMigrations({ knex }),

    onCheckpointError: (listener) => void knex.client.on("checkpoint-error", listener),

    onFailure: (listener) => void knex.client.on("failure", listener),

    async backUp(file, stop) {
      if (engine !== "sqlite") throw new TypeError(`${engine} has tools of its own`);
      return backUp(sqliteFile(url), file, stop);
    },

    connections: () =>
      engine === "sqlite" ? undefined : (knex.client as unknown as LimitedClient).connections,

    close: () => knex.destroy(),
  };
}

/** PostgreSQL: the commit doesn't wait for the disk. */
function withAsynchronousCommit<T>(work: (trx: Knex.Transaction) => Promise<T>) {
  return async (trx: Knex.Transaction) => {
    await trx.raw("set local synchronous_commit to off");
    return work(trx);
  };
}

// Knex prints warnings to the console; callers log errors themselves, with their context.
const silent = { warn() {}, error() {}, debug() {}, deprecate() {} };
