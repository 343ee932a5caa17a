import { mkdirSync } from "node:fs";
import path from "node:path";
import knexFactory, { type Knex } from "knex";
import { createBatchInsert, type Insert } from "./batch-insert.ts";
import { type Engine, engineOf, knexConfig, sqliteFile } from "./engine.ts";
import type { Insertion } from "./insertion.ts";
import { MIGRATIONS, migrations } from "./migrations/index.ts";
import { migrate, pendingMigrations, rejectNewerSchema } from "./migrations/migrate.ts";
import { createPrepare, type Prepare } from "./prepared-statements.ts";
import { withRetries } from "./retry.ts";
import type { SqliteClient } from "./sqlite/client.ts";

/** An open database, which every store receives. Times are epoch milliseconds. */
export type Database = {
  knex: Knex;
  engine: Engine;
  prepare: Prepare;
  /** Creates a function that inserts small rows in batches. */
  inserter(insertion: Insertion): Insert;
  /**
   * Runs `work` in a transaction. After a deadlock or serialization failure, `work` runs again from the start, so it
   * must have no side effects outside the transaction. Without `isDurable`, the commit doesn't wait for the disk (except
   * on MySQL and MariaDB): a power failure may undo it, but nothing that was durably committed after it.
   */
  transaction<T>(work: (trx: Knex.Transaction) => Promise<T>, options?: { isDurable: boolean }): Promise<T>;
  /**
   * Runs a read that may take long: on SQLite, on a thread, so it doesn't block other requests.
   * @throws KnexTimeoutError on the other engines after `timeoutMs`, when the statement is canceled
   */
  readAside<Row>(query: Knex.QueryBuilder, timeoutMs: number): Promise<Row[]>;
  /** Applies pending migrations and resolves to their names. Safe to call from several processes. */
  migrate(): Promise<string[]>;
  /** Resolves to the names of pending migrations. Rejects when the database is unavailable. */
  pendingMigrations(): Promise<string[]>;
  /** Rejects if a newer version has migrated the database. @throws NewerSchema */
  rejectNewerSchema(): Promise<void>;
  /**
   * Calls the listener with the SQL of each statement, without its values, and the ID of its transaction, if any. Returns
   * an unsubscribe function.
   */
  onStatement(listener: (sql: string, transaction?: string) => void): () => void;
  /** Calls the listener for each failed checkpoint of a SQLite database. The checkpoint is retried. */
  onCheckpointError(listener: (error: Error) => void): void;
  close(): Promise<void>;
};

/** Opens the database of a `DATABASE_URL`. Connects lazily, and creates the folder of a SQLite file, for its owner only. */
export function openDatabase(url: string): Database {
  const engine = engineOf(url);
  if (engine === "sqlite") mkdirSync(path.dirname(sqliteFile(url)), { recursive: true, mode: 0o700 });
  const knex = knexFactory({
    ...knexConfig(url),
    migrations: { migrationSource: migrations(engine), disableTransactions: engine === "mysql" },
    log: silent,
  });
  const statements = createPrepare(knex);
  const transaction: Database["transaction"] = (work, options = { isDurable: true }) => {
    const isAsynchronous = engine === "postgres" && !options.isDurable;
    const run = isAsynchronous ? withAsynchronousCommit(work) : work;
    return withRetries(() => knex.transaction(run, options as Knex.TransactionConfig), false);
  };

  return {
    knex,
    engine,
    prepare: statements.prepare,
    inserter: (insertion) => createBatchInsert({ knex, engine, ...statements }, insertion),

    transaction,

    readAside: <Row>(query: Knex.QueryBuilder, timeoutMs: number) =>
      engine === "sqlite"
        ? ((knex.client as SqliteClient).readOnThread(query.toSQL().toNative()) as Promise<Row[]>)
        : (query.timeout(timeoutMs, { cancel: true }) as unknown as Promise<Row[]>),

    migrate: () => migrate({ knex, engine, transaction }),

    pendingMigrations: () => pendingMigrations({ knex }, MIGRATIONS),

    rejectNewerSchema: () => rejectNewerSchema({ knex }),

    onStatement(listener) {
      const onQuery = (query: { sql: string; __knexTxId?: string }) => listener(query.sql, query.__knexTxId);
      knex.on("query", onQuery);
      return () => void knex.off("query", onQuery);
    },

    onCheckpointError: (listener) => void knex.client.on("checkpoint-error", listener),

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
